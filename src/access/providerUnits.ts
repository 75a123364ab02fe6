import { createMethodLookup } from "../access/methodRules.ts";

/** Units of one call, by method or by prefix and `*`. The longest match counts. */
export type UnitTable = Readonly<Record<string, number>>;

/**
 * Alchemy's compute units, from its published table.
 * Source: docs/reference/state.md, What providers bill. Each item of a batch counts singly.
 */
const ALCHEMY: UnitTable = {
  "*": 20,
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

/** Infura's credits. Source: docs/reference/state.md, What providers bill. */
const INFURA: UnitTable = {
  "*": 80,
  "debug_*": 1000,
  "trace_*": 300,
  eth_chainId: 5,
  eth_syncing: 5,
  net_version: 5,
  net_listening: 5,
  eth_subscribe: 5,
  eth_unsubscribe: 10,
  eth_getFilterChanges: 140,
  eth_getProof: 150,
  eth_getBlockTransactionCountByHash: 150,
  eth_getBlockTransactionCountByNumber: 150,
  eth_getTransactionByBlockHashAndIndex: 150,
  eth_getTransactionByBlockNumberAndIndex: 150,
  eth_getLogs: 255,
  eth_getFilterLogs: 255,
  eth_blobBaseFee: 300,
  eth_estimateGas: 300,
  eth_getBlockReceipts: 1000,
};

/** QuickNode's API credits on Ethereum and OP stacks. Source: docs/reference/state.md, What providers bill. */
const QUICKNODE: UnitTable = {
  "*": 20,
  "debug_*": 40,
  "trace_*": 40,
  "txpool_*": 40,
  txpool_content: 80,
  trace_replayTransaction: 80,
  trace_replayBlockTransactions: 80,
};

/** Price tables by the name that `usage.prices` takes. `calls` is for providers that bill each call alike. */
export const PRICE_TABLES = { alchemy: ALCHEMY, infura: INFURA, quicknode: QUICKNODE, calls: { "*": 1 } } as const;

export type PriceTable = keyof typeof PRICE_TABLES;

/** Returns the units of one call. */
export type UnitsOf = (method: string) => number;

/** Creates the price list of a chain. A method that the table does not match costs nothing. */
export const createUnitsOf = (units: UnitTable = ALCHEMY): UnitsOf => {
  const unitsOf = createMethodLookup(units);
  return (method) => unitsOf(method) ?? 0;
};

/** Returns the named table with changed entries. Of two changes of one entry, the later one counts. */
export const createUnitTable = (prices: PriceTable, ...changes: readonly UnitTable[]): UnitTable =>
  Object.assign({}, PRICE_TABLES[prices], ...changes);
