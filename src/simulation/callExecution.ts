import type { StateReader } from "../core/stateReader.ts";
import { smaller } from "../ethereum/bigintOrder.ts";
import { blobBaseFee } from "../ethereum/blockFees.ts";
import { type Address, formatData } from "../ethereum/hex.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import { type ChainForks, rulesAt } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import type { BlockEnvironment, Engine, TransactionChecks, TransactionResult } from "../evm/engine.ts";
import { TransactionError } from "../evm/executionErrors.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import type { ReadRecorder } from "../evm/readRecorder.ts";
import type { WorkerContext } from "../evm/reads/complete.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import { type CallRequest, parseCall } from "./callRequest.ts";
import { overrideState } from "./overrideState.ts";
import { type BlockOverrides, parseBlockOverrides, parseStateOverrides, SIMULATE_CODES } from "./payload.ts";
import { revertReason } from "./revertReason.ts";
import { messageOfCall } from "./simulateCall.ts";
import type { BaseBlock } from "./simulatedHeader.ts";

/** A call that executes in a block, on that block's state. Plain data, sent to a worker. */
export interface CallInput {
  /** JSON text of [call, block, stateOverrides, blockOverrides]. The block was resolved before. */
  readonly paramsText: Uint8Array;
  readonly block: BaseBlock;
  readonly forks: ChainForks;
  readonly gasCap: bigint;
}

interface ExecutionOptions extends Pick<TransactionChecks, "liftsExecutionCap"> {
  /** Default: yes. */
  readonly movesPrecompiles?: boolean;
}

const decoder = new TextDecoder();

/** The state of a run, and the recorder of what the run reads. */
export interface CallSource {
  /** On which the call executes. Default: a new one. */
  readonly state?: ExecutionState;
  readonly reader: StateReader;
  readonly reads: ReadRecorder | undefined;
}

/** One call, ready to run with any amount of gas. */
export interface CallExecution {
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

/**
 * Parses the call and its overrides. Throws RpcError.
 * geth caps the gas of execution (EIP-8037) in its estimates and access lists, but not in eth_call.
 * Its estimates know no precompile that could be moved. Source: geth, internal/ethapi/api.go, DoEstimateGas.
 */
export const prepareExecution = (
  input: CallInput,
  context: Pick<WorkerContext, "engine">,
  { liftsExecutionCap, movesPrecompiles = true }: ExecutionOptions = {},
): CallExecution => {
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
  const createState = ({ reader, reads, state = engine.createState(reader) }: CallSource) => {
    return { state, movedPrecompiles: overrideState(state, states, movesPrecompiles ? engine.precompiles : [], reads) };
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
          checks: { nonce: false, sender: false, freeGas: true, ...(liftsExecutionCap && { liftsExecutionCap }) },
          movedPrecompiles,
          tracesAccess: accessList !== undefined,
        });
      } catch (error) {
        throw describeRejection(error, gas);
      }
    },
  };
};

/** Returns the client's error if the transaction was rejected. Any other error is returned unchanged. */
const describeRejection = (error: unknown, gas: bigint): unknown =>
  error instanceof TransactionError
    ? new RpcError(CODES.SERVER, `err: ${error.message} (supplied gas ${gas})`, { cause: error })
    : error;

const environmentOf = (
  block: BaseBlock,
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

/** Returns the error of a call that failed. */
export const callError = (result: TransactionResult): RpcError => {
  if (result.status === "halt") {
    return new RpcError(CODES.SERVER, result.halt ?? "execution failed");
  }
  const reason = revertReason(result.returnData);
  const message = reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  return new RpcError(SIMULATE_CODES.REVERTED, message, { data: formatData(result.returnData) });
};
