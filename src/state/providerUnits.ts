/**
 * Compute units that providers bill for one call, by method: Alchemy's published table.
 * Source: docs/reference/state.md, What providers bill. Each item of a batch counts singly.
 */
const PROVIDER_UNITS: Readonly<Record<string, number>> = {
  net_version: 0,
  eth_chainId: 0,
  eth_syncing: 0,
  eth_blockNumber: 10,
  eth_feeHistory: 10,
  eth_maxPriorityFeePerGas: 10,
  eth_blobBaseFee: 10,
  eth_createAccessList: 10,
  eth_subscribe: 10,
  eth_call: 26,
  eth_simulateV1: 40,
  eth_sendRawTransaction: 40,
  debug_traceCall: 40,
  debug_traceBlockByHash: 40,
  debug_traceBlockByNumber: 40,
  eth_getLogs: 60,
};

/** Units of a method that is in no table: most methods cost this much. */
const DEFAULT_UNITS = 20;

/** Returns the units of one call. */
export type UnitsOf = (method: string) => number;

/** Creates the price list of a chain. `overrides` replaces or adds entries. */
export const createUnitsOf =
  (overrides: Readonly<Record<string, number>> = {}): UnitsOf =>
  (method) =>
    overrides[method] ?? PROVIDER_UNITS[method] ?? DEFAULT_UNITS;
