import type { StateReader } from "../core/stateReader.ts";
import { larger, smaller } from "../ethereum/bigintOrder.ts";
import { blobBaseFee } from "../ethereum/blobFee.ts";
import { type Address, type Data, formatData, type Hash } from "../ethereum/hex.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import { type ChainForks, rulesAt } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import type { BlockEnvironment, Engine, TransactionResult } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import type { ReadRecorder } from "../evm/readRecorder.ts";
import type { WorkerContext } from "../evm/runs/evmTask.ts";
import { TransactionError } from "../evm/transactionError.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import { type CallRequest, parseCall } from "./callRequest.ts";
import { SIMULATE_CODES } from "./codes.ts";
import { overrideState } from "./overrideState.ts";
import { type BlockOverrides, parseBlockOverrides, parseStateOverrides } from "./payload.ts";
import { revertReason } from "./revertReason.ts";
import { messageOfCall } from "./simulateCall.ts";
import type { ParentBlock } from "./simulatedHeader.ts";

const TRANSFER_GAS = 21_000n;
const CALL_STIPEND = 2_300n;
const MAX_TRANSACTION_GAS = 16_777_216n;
/** geth's `estimateGasErrorRatio`, in thousandths: an estimate may be too high by this share. */
const ESTIMATE_TOLERANCE = 15n;

/** A call that executes in a block, on that block's state. Plain data, sent to a worker. */
export interface CallInput {
  /** JSON text of [call, block, stateOverrides, blockOverrides]. The block was resolved before. */
  readonly paramsText: Uint8Array;
  readonly block: ParentBlock;
  readonly forks: ChainForks;
  readonly gasCap: bigint;
}

type RunContext = Pick<WorkerContext, "engine" | "withState">;

const decoder = new TextDecoder();

/** Executes eth_call and returns the call's bytes. Throws RpcError. */
export const runCall = async (input: CallInput, context: RunContext): Promise<Data> => {
  const execution = prepareExecution(input, context);
  const result = await context.withState((reader, reads) => execution.run({ reader, reads }, execution.gas));
  if (result.status !== "success") {
    throw failure(result);
  }
  return formatData(result.returnData);
};

/** Executes eth_estimateGas. Source: geth, eth/gasestimator. Throws RpcError. */
export const runEstimate = async (input: CallInput, context: RunContext): Promise<bigint> => {
  const execution = prepareExecution(input, context);
  return context.withState((reader, reads) => estimateGas(execution, { reader, reads }));
};

export interface AccessListResult {
  readonly accessList: readonly AccessListEntry[];
  readonly gasUsed: bigint;
  readonly error?: string;
}

/** Executes eth_createAccessList: repeats the call with the list until the list does not change. Throws RpcError. */
export const runAccessList = async (input: CallInput, context: RunContext): Promise<AccessListResult> => {
  const execution = prepareExecution(input, context);
  return context.withState(async (reader, reads) => {
    const source = { reader, reads };
    let accessList: readonly AccessListEntry[] = execution.call.accessList ?? [];
    const created = execution.createdContract(source);
    for (;;) {
      const result = await execution.run(source, execution.gas, accessList);
      // Entries of the list are warm, and the trace omits warm entries.
      const next = mergeAccessLists(accessList, execution.filterAccessed(result.accessed ?? [], created));
      if (countEntries(next) === countEntries(accessList)) {
        const error = result.status === "success" ? {} : { error: failure(result).message };
        return { accessList: next, gasUsed: result.gasUsed, ...error };
      }
      accessList = next;
    }
  });
};

/** The state of a call, and the recorder of what it reads. */
interface CallSource {
  readonly reader: StateReader;
  readonly reads: ReadRecorder | undefined;
}

interface CallExecution {
  readonly call: CallRequest;
  readonly engine: Engine;
  readonly block: BlockEnvironment;
  readonly gas: bigint;
  readonly gasCap: bigint;
  run(source: CallSource, gas: bigint, accessList?: readonly AccessListEntry[]): Promise<TransactionResult>;
  state(source: CallSource): ExecutionState;
  /** Returns the address of the contract that the call creates, or null. */
  createdContract(source: CallSource): Address | null;
  filterAccessed(accessed: readonly AccessListEntry[], created: Address | null): readonly AccessListEntry[];
}

const prepareExecution = (input: CallInput, context: RunContext): CallExecution => {
  const params: unknown = JSON.parse(decoder.decode(input.paramsText));
  if (!Array.isArray(params) || params[0] === undefined) {
    throw invalidParams("missing value for required argument 0");
  }
  const call = parseCall(params[0], "call");
  const states = parseStateOverrides(params[2], "stateOverrides");
  const overrides = parseBlockOverrides(params[3], "blockOverrides");
  const { forks, gasCap } = input;
  const parent = input.block;
  const rules = rulesAt(forks, overrides.number ?? parent.number, overrides.time ?? parent.timestamp);
  const engine = context.engine(rules);
  const isFree = (call.gasPrice ?? call.maxFeePerGas ?? call.maxPriorityFeePerGas ?? 0n) === 0n;
  const environment = (reader: StateReader): BlockEnvironment => ({
    ...environmentOf(parent, overrides, isFree),
    blobBaseFee:
      overrides.blobBaseFee ?? (rules.blobs === undefined ? 1n : blobBaseFee(parent.excessBlobGas, rules.blobs)),
    blockHash: (number) => (number === parent.number ? parent.hash : reader.blockHash(number)),
  });
  const createState = ({ reader, reads }: CallSource) => {
    const state = engine.createState(reader);
    return { state, movedPrecompiles: overrideState(state, states, engine.precompiles, reads) };
  };
  const addressesWithoutEntry = (from: Address, to: Address | null) =>
    new Set<Address>([from, ...(to === null ? [] : [to]), ...engine.precompiles]);
  return {
    call,
    engine,
    block: { ...environmentOf(parent, overrides, isFree), blobBaseFee: 1n, blockHash: () => parent.hash },
    gas: smaller(call.gas ?? gasCap, gasCap),
    gasCap,
    state: (source) => createState(source).state,
    createdContract: (source) =>
      call.to === null ? createdAddress(call.from, call.nonce ?? createState(source).state.nonceOf(call.from)) : null,
    filterAccessed: (accessed, created) => {
      const omitted = addressesWithoutEntry(call.from, call.to ?? created);
      return accessed.filter(({ address, storageKeys }) => storageKeys.length > 0 || !omitted.has(address));
    },
    run: async (source, gas, accessList) => {
      const { state, movedPrecompiles } = createState(source);
      const request = accessList === undefined ? call : { ...call, accessList };
      try {
        const message = messageOfCall(request, state, engine, gas);
        return await engine.transact({ state, block: environment(source.reader), reads: source.reads }, message, {
          checks: { nonce: false, sender: false, freeGas: true },
          movedPrecompiles,
          tracesAccess: accessList !== undefined,
        });
      } catch (error) {
        if (!(error instanceof TransactionError)) {
          throw error;
        }
        throw new RpcError(CODES.SERVER, `err: ${error.message} (supplied gas ${gas})`, { cause: error });
      }
    },
  };
};

const environmentOf = (
  block: ParentBlock,
  overrides: BlockOverrides,
  isFree: boolean,
): Omit<BlockEnvironment, "blobBaseFee" | "blockHash"> => ({
  number: overrides.number ?? block.number,
  timestamp: overrides.time ?? block.timestamp,
  coinbase: overrides.feeRecipient ?? block.miner,
  gasLimit: overrides.gasLimit ?? block.gasLimit,
  // In geth the base fee is zero for a call without a price.
  baseFee: isFree ? 0n : (overrides.baseFeePerGas ?? block.baseFeePerGas ?? 0n),
  prevRandao: overrides.prevRandao ?? block.mixHash,
  difficulty: block.difficulty,
});

const failure = (result: TransactionResult): RpcError => {
  if (result.status === "halt") {
    return new RpcError(CODES.SERVER, result.halt ?? "execution failed");
  }
  const reason = revertReason(result.returnData);
  const message = reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  return new RpcError(SIMULATE_CODES.REVERTED, message, { data: formatData(result.returnData) });
};

const estimateGas = async (execution: CallExecution, source: CallSource): Promise<bigint> => {
  const { call } = execution;
  const isTransfer =
    call.input.length === 0 && call.to !== null && execution.state(source).codeOf(call.to).length === 0;
  let high = await highestGas(execution, source);
  if (isTransfer && (await runIfSuccessful(execution, source, TRANSFER_GAS)) !== undefined) {
    return TRANSFER_GAS;
  }
  const first = await execution.run(source, high);
  if (first.status === "revert") {
    throw failure(first);
  }
  if (first.status === "halt") {
    throw new RpcError(CODES.SERVER, `gas required exceeds allowance (${high})`);
  }
  let low = first.gasUsed - 1n;
  const optimistic = ((first.maxUsedGas + CALL_STIPEND) * 64n) / 63n;
  if (optimistic < high) {
    if ((await runIfSuccessful(execution, source, optimistic)) === undefined) {
      low = optimistic;
    } else {
      high = optimistic;
    }
  }
  while (low + 1n < high && (high - low) * 1_000n >= high * ESTIMATE_TOLERANCE) {
    // Most calls need little more gas than they use, so the search starts in the lower half.
    const middle = smaller((high + low) / 2n, low * 2n);
    if ((await runIfSuccessful(execution, source, middle)) === undefined) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
};

/** Returns the highest gas for the call: the block's limit and, with a price, the gas that the sender can pay. */
const highestGas = async (execution: CallExecution, source: CallSource): Promise<bigint> => {
  const { call, engine, block, gasCap } = execution;
  const hasGas = call.gas !== undefined && call.gas >= TRANSFER_GAS;
  if (!hasGas) {
    source.reads?.environment("GASLIMIT");
  }
  let high = hasGas ? call.gas : block.gasLimit;
  const price = call.gasPrice ?? call.maxFeePerGas ?? 0n;
  if (price > 0n) {
    const available = execution.state(source).balanceOf(call.from) - call.value;
    if (available < 0n) {
      throw new RpcError(CODES.SERVER, "insufficient funds for transfer");
    }
    high = smaller(high, available / price);
  }
  if (engine.isActive(7825)) {
    high = smaller(high, MAX_TRANSACTION_GAS);
  }
  return larger(smaller(high, gasCap), 0n);
};

const runIfSuccessful = async (
  execution: CallExecution,
  source: CallSource,
  gas: bigint,
): Promise<TransactionResult | undefined> => {
  try {
    const result = await execution.run(source, gas);
    return result.status === "success" ? result : undefined;
  } catch (error) {
    // The gas does not suffice to start.
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
};

const mergeAccessLists = (
  one: readonly AccessListEntry[],
  other: readonly AccessListEntry[],
): readonly AccessListEntry[] => {
  const slots = new Map<Address, Set<Hash>>();
  for (const { address, storageKeys } of [...one, ...other]) {
    slots.set(address, new Set([...(slots.get(address) ?? []), ...storageKeys]));
  }
  return [...slots].map(([address, storageKeys]) => ({ address, storageKeys: [...storageKeys] }));
};

const countEntries = (list: readonly AccessListEntry[]): number =>
  list.reduce((sum, { storageKeys }) => sum + 1 + storageKeys.length, 0);
