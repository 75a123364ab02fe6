import { larger, smaller } from "../ethereum/bigintOrder.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { isForkActive } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import { applyAuthorizations } from "./authorizations.ts";
import {
  CONSENSUS_CHECKS,
  type Cost,
  checkTransaction,
  MAX_NONCE,
  type TransactionChecks,
} from "./checkTransaction.ts";
import type { BlockEnvironment, Engine, EngineLog, MessageContext, MessageResult } from "./engine.ts";
import { NONCE_OVERFLOW } from "./exceptionalHalt.ts";
import type { StateOverlay } from "./stateOverlay.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

/** What a chain takes from the sender besides gas, and who gets the base fee. */
export interface ChainFees {
  /** Known before it runs, e.g. the OP stack's L1 data fee. */
  readonly fixed: bigint;
  readonly fixedTo: Address;
  /** For so much gas: charged on the limit, settled on what was used. */
  perGas(gas: bigint): bigint;
  readonly perGasTo: Address;
  readonly baseFeeTo: Address;
}

export interface TransactionOptions {
  readonly checks?: TransactionChecks;
  readonly tracesTransfers?: boolean;
  readonly tracesAccess?: boolean;
  readonly movedPrecompiles?: ReadonlyMap<Address, Address | null>;
  readonly fees?: ChainFees;
}

export interface TransactionResult {
  readonly status: MessageResult["status"];
  readonly halt?: string;
  readonly returnData: Uint8Array;
  readonly gasUsed: bigint;
  /** At its highest, before refunds. */
  readonly maxUsedGas: bigint;
  readonly blobGasUsed: bigint;
  readonly logs: readonly EngineLog[];
  /** Number of logs that were captured, with those of frames that failed. */
  readonly capturedLogs: number;
  readonly created?: Address;
  readonly accessed?: readonly AccessListEntry[];
}

/** One transaction on a state: checked, paid, run, settled, and its end tidied up. Throws TransactionError and leaves the state as it was. */
export const applyTransaction = async (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  message: TransactionMessage,
  options: TransactionOptions = {},
): Promise<TransactionResult> => {
  const { fees } = options;
  const fixed = fees?.fixed ?? 0n;
  const limitFee = fees?.perGas(message.gas) ?? 0n;
  const cost = checkTransaction(engine, state, block, message, options.checks ?? CONSENSUS_CHECKS, fixed + limitFee);
  state.addBalance(message.from, -(message.gas * cost.gasPrice + cost.blobFee + fixed + limitFee));
  const result = await runTransaction(engine, state, block, message, cost, options);
  applyRefunds(engine, state, block, message, cost, result.gasUsed, fees);
  endTransaction(engine, state, result.destroyed);
  return { ...result, blobGasUsed: cost.blobGas };
};

interface Ran extends Omit<TransactionResult, "blobGasUsed"> {
  readonly destroyed: readonly Address[];
}

/** From the nonce to the gas used. What it costs was paid before. */
export const runTransaction = async (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  message: TransactionMessage,
  cost: Cost,
  options: TransactionOptions,
): Promise<Ran> => {
  const { from, to, value, input, gas } = message;
  const nonce = state.nonceOf(from);
  if (to === null && nonce === MAX_NONCE) return refusedCreation(cost);
  // Wraps at the top where nonces are not checked, as geth's does.
  state.setNonce(from, BigInt.asUintN(64, nonce + 1n));
  const authorized = applyAuthorizations(state, engine.rules.chainId, message.authorizationList);
  const context = messageContext(engine, block, message, cost, options, authorized.warm);
  const result = await engine.run(state, { caller: from, to, value, data: input, gas: gas - cost.intrinsic }, context);
  const used = cost.intrinsic + result.gasUsed;
  const maxRefund = used / (engine.isActive(3529) ? 5n : 2n);
  const refund = authorized.refund + result.refund;
  const afterRefund = used - smaller(refund, maxRefund);
  return {
    status: result.status,
    returnData: result.returnData,
    logs: result.logs,
    capturedLogs: result.capturedLogs,
    destroyed: result.destroyed,
    ...(result.halt === undefined ? {} : { halt: result.halt }),
    ...(result.created === undefined ? {} : { created: result.created }),
    ...(result.accessed === undefined ? {} : { accessed: result.accessed }),
    gasUsed: larger(afterRefund, cost.floor),
    maxUsedGas: larger(used, cost.floor),
  };
};

/** geth's `create` (core/vm/evm.go): nothing runs, nothing changes, and only the intrinsic gas is used. */
const refusedCreation = ({ intrinsic, floor }: Cost): Ran => {
  const gasUsed = larger(intrinsic, floor);
  const nothing = { returnData: new Uint8Array(0), logs: [], capturedLogs: 0, destroyed: [] };
  return { ...nothing, status: "halt", halt: NONCE_OVERFLOW, gasUsed, maxUsedGas: gasUsed };
};

/** EIP-2929, EIP-2930 and EIP-3651: what is warm at the beginning. */
const messageContext = (
  engine: Engine,
  block: BlockEnvironment,
  message: TransactionMessage,
  cost: Cost,
  options: TransactionOptions,
  authorities: readonly Address[],
): MessageContext => {
  const warmAddresses = [message.from, ...engine.precompiles, ...authorities];
  if (message.to !== null) warmAddresses.push(message.to);
  if (engine.isActive(3651)) warmAddresses.push(block.coinbase);
  const warmSlots: [Address, Hash][] = [];
  for (const { address, storageKeys } of message.accessList) {
    warmAddresses.push(address);
    for (const slot of storageKeys) warmSlots.push([address, slot]);
  }
  const { tracesTransfers, tracesAccess, movedPrecompiles } = options;
  return {
    block,
    gasPrice: cost.gasPrice,
    blobVersionedHashes: message.blobVersionedHashes,
    warmAddresses,
    warmSlots,
    ...(tracesTransfers === undefined ? {} : { tracesTransfers }),
    ...(tracesAccess === undefined ? {} : { tracesAccess }),
    ...(movedPrecompiles === undefined ? {} : { movedPrecompiles }),
  };
};

/** Gas that is left goes back, the tip to the block's beneficiary, a chain's fees to its vaults. */
const applyRefunds = (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  message: TransactionMessage,
  cost: Cost,
  gasUsed: bigint,
  fees: ChainFees | undefined,
): void => {
  state.addBalance(message.from, (message.gas - gasUsed) * cost.gasPrice);
  const baseFee = engine.isActive(1559) ? block.baseFee : 0n;
  if (!cost.isFree) state.addBalance(block.coinbase, gasUsed * (cost.gasPrice - baseFee));
  if (fees === undefined) return;
  const usedFee = fees.perGas(gasUsed);
  state.addBalance(message.from, fees.perGas(message.gas) - usedFee);
  if (!cost.isFree) state.addBalance(fees.baseFeeTo, gasUsed * baseFee);
  state.addBalance(fees.fixedTo, fees.fixed);
  state.addBalance(fees.perGasTo, usedFee);
};

export const endTransaction = (engine: Engine, state: StateOverlay, destroyed: readonly Address[]): void => {
  for (const address of destroyed) state.delete(address);
  state.endTransaction(isForkActive(engine.rules, "spuriousDragon"));
};
