import type { StateReader } from "../core/stateReader.ts";
import { larger, smaller } from "../ethereum/bigintOrder.ts";
import { blobBaseFee } from "../ethereum/blobFee.ts";
import { type Address, type Data, formatData, type Hash } from "../ethereum/hex.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import { type ChainForks, rulesAt } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import { MAX_EXECUTION_GAS } from "../evm/checks/transactionChecks.ts";
import type { BlockEnvironment, Engine, TransactionResult } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
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
/** geth's tolerance: an estimate may be too high by this number of thousandths. */
const ESTIMATE_ERROR = 15n;

/** A call that executes in a block, on that block's state. Plain data, sent to a worker. */
export interface CallInput {
  /** JSON text of [call, block, stateOverrides, blockOverrides]. The block was resolved before. */
  readonly paramsText: Uint8Array;
  readonly block: ParentBlock;
  readonly forks: ChainForks;
  readonly gasCap: bigint;
}

type Host = Pick<WorkerContext, "engine" | "withState">;

const decoder = new TextDecoder();

/** Executes eth_call and returns the call's bytes. Throws RpcError. */
export const runCall = async (input: CallInput, host: Host): Promise<Data> => {
  const trial = prepare(input, host, true);
  const result = await host.withState((reader) => trial.run(reader, trial.gas));
  if (result.status !== "success") {
    throw failure(result);
  }
  return formatData(result.returnData);
};

/** Executes eth_estimateGas. Source: geth, eth/gasestimator. Throws RpcError. */
export const runEstimate = async (input: CallInput, host: Host): Promise<bigint> => {
  const trial = prepare(input, host);
  return host.withState((reader) => estimate(trial, reader));
};

export interface AccessListResult {
  readonly accessList: readonly AccessListEntry[];
  readonly gasUsed: bigint;
  readonly error?: string;
}

/** Executes eth_createAccessList: repeats the call with the list until the list does not change. Throws RpcError. */
export const runAccessList = async (input: CallInput, host: Host): Promise<AccessListResult> => {
  const trial = prepare(input, host);
  return host.withState(async (reader) => {
    let accessList: readonly AccessListEntry[] = trial.call.accessList ?? [];
    const created = trial.created(reader);
    for (;;) {
      const result = await trial.run(reader, trial.gas, accessList);
      // Entries of the list are warm, and the trace omits warm entries.
      const next = union(accessList, trial.listed(result.accessed ?? [], created));
      if (sizeOf(next) === sizeOf(accessList)) {
        const error = result.status === "success" ? {} : { error: failure(result).message };
        return { accessList: next, gasUsed: result.gasUsed, ...error };
      }
      accessList = next;
    }
  });
};

interface Trial {
  readonly call: CallRequest;
  readonly engine: Engine;
  readonly block: BlockEnvironment;
  readonly gas: bigint;
  readonly gasCap: bigint;
  run(reader: StateReader, gas: bigint, accessList?: readonly AccessListEntry[]): Promise<TransactionResult>;
  state(reader: StateReader): ExecutionState;
  /** Returns the address of the contract that the call creates, or null. */
  created(reader: StateReader): Address | null;
  listed(accessed: readonly AccessListEntry[], created: Address | null): readonly AccessListEntry[];
}

/** geth caps the gas of execution (EIP-8037) in its estimates and access lists, but not in eth_call. */
const prepare = (input: CallInput, host: Host, liftsExecutionCap = false): Trial => {
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
  const engine = host.engine(rules);
  const isFree = (call.gasPrice ?? call.maxFeePerGas ?? call.maxPriorityFeePerGas ?? 0n) === 0n;
  const environment = (reader: StateReader): BlockEnvironment => ({
    ...environmentOf(parent, overrides, isFree),
    blobBaseFee:
      overrides.blobBaseFee ?? (rules.blobs === undefined ? 1n : blobBaseFee(parent.excessBlobGas, rules.blobs)),
    blockHash: (number) => (number === parent.number ? parent.hash : reader.blockHash(number)),
  });
  const prepared = (reader: StateReader) => {
    const state = engine.createState(reader);
    return { state, movedPrecompiles: overrideState(state, states, engine.precompiles) };
  };
  const hidden = (from: Address, to: Address | null) =>
    new Set<Address>([from, ...(to === null ? [] : [to]), ...engine.precompiles]);
  return {
    call,
    engine,
    block: { ...environmentOf(parent, overrides, isFree), blobBaseFee: 1n, blockHash: () => parent.hash },
    gas: smaller(call.gas ?? gasCap, gasCap),
    gasCap,
    state: (reader) => prepared(reader).state,
    created: (reader) =>
      call.to === null ? createdAddress(call.from, call.nonce ?? prepared(reader).state.nonceOf(call.from)) : null,
    listed: (accessed, created) => {
      const plain = hidden(call.from, call.to ?? created);
      return accessed.filter(({ address, storageKeys }) => storageKeys.length > 0 || !plain.has(address));
    },
    run: async (reader, gas, accessList) => {
      const { state, movedPrecompiles } = prepared(reader);
      const request = accessList === undefined ? call : { ...call, accessList };
      try {
        const message = messageOfCall(request, state, engine, gas);
        return await engine.transact({ state, block: environment(reader) }, message, {
          checks: { nonce: false, sender: false, freeGas: true, liftsExecutionCap },
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
  ...(block.slotNumber === undefined ? {} : { slotNumber: block.slotNumber }),
});

const failure = (result: TransactionResult): RpcError => {
  if (result.status === "halt") {
    return new RpcError(CODES.SERVER, result.halt ?? "execution failed");
  }
  const reason = revertReason(result.returnData);
  const message = reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  return new RpcError(SIMULATE_CODES.REVERTED, message, { data: formatData(result.returnData) });
};

const estimate = async (trial: Trial, reader: StateReader): Promise<bigint> => {
  const { call } = trial;
  const isTransfer = call.input.length === 0 && call.to !== null && trial.state(reader).codeOf(call.to).length === 0;
  let high = await highest(trial, reader);
  const transfer = isTransfer ? await succeeds(trial, reader, TRANSFER_GAS) : undefined;
  if (transfer !== undefined) {
    return transfer.gasUsed;
  }
  const first = await trial.run(reader, high);
  if (first.status === "revert") {
    throw failure(first);
  }
  if (first.status === "halt") {
    throw new RpcError(CODES.SERVER, `gas required exceeds allowance (${high})`);
  }
  let low = first.gasUsed - 1n;
  const optimistic = ((first.maxUsedGas + CALL_STIPEND) * 64n) / 63n;
  if (optimistic < high) {
    if ((await succeeds(trial, reader, optimistic)) === undefined) {
      low = optimistic;
    } else {
      high = optimistic;
    }
  }
  while (low + 1n < high && (high - low) * 1_000n >= high * ESTIMATE_ERROR) {
    // Most calls need little more gas than they use, so the search starts in the lower half.
    const middle = smaller((high + low) / 2n, low * 2n);
    if ((await succeeds(trial, reader, middle)) === undefined) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
};

/** Returns the highest gas for the call: the block's limit and, with a price, the gas that the sender can pay. */
const highest = async (trial: Trial, reader: StateReader): Promise<bigint> => {
  const { call, engine, block, gasCap } = trial;
  let high = call.gas !== undefined && call.gas >= TRANSFER_GAS ? call.gas : block.gasLimit;
  const price = call.gasPrice ?? call.maxFeePerGas ?? 0n;
  if (price > 0n) {
    const available = trial.state(reader).balanceOf(call.from) - call.value;
    if (available < 0n) {
      throw new RpcError(CODES.SERVER, "insufficient funds for transfer");
    }
    high = smaller(high, available / price);
  }
  if (engine.isActive(7825) && !engine.isActive(8037)) {
    high = smaller(high, MAX_EXECUTION_GAS);
  }
  return larger(smaller(high, gasCap), 0n);
};

const succeeds = async (trial: Trial, reader: StateReader, gas: bigint): Promise<TransactionResult | undefined> => {
  try {
    const result = await trial.run(reader, gas);
    return result.status === "success" ? result : undefined;
  } catch (error) {
    // The gas does not suffice to start.
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
};

const union = (one: readonly AccessListEntry[], other: readonly AccessListEntry[]): readonly AccessListEntry[] => {
  const slots = new Map<Address, Set<Hash>>();
  for (const { address, storageKeys } of [...one, ...other]) {
    slots.set(address, new Set([...(slots.get(address) ?? []), ...storageKeys]));
  }
  return [...slots].map(([address, storageKeys]) => ({ address, storageKeys: [...storageKeys] }));
};

const sizeOf = (list: readonly AccessListEntry[]): number =>
  list.reduce((sum, { storageKeys }) => sum + 1 + storageKeys.length, 0);
