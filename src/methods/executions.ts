import type { Context } from "../core/context.ts";
import type { BlockId, HeaderFields } from "../core/heads.ts";
import { MustForwardError } from "../core/mustForwardError.ts";
import { parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import type { PendingBlock, PendingView } from "../core/view.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { createCall, paramsTextOf } from "../jsonrpc/call.ts";
import { overBudget } from "../jsonrpc/rpcError.ts";
import { pendingState } from "../pending/pendingState.ts";
import { prefetchHintOfCall } from "../simulation/payload.ts";
import { type BaseBlock, parseBaseBlock } from "../simulation/simulatedHeader.ts";
import type { ExecutionBase, Simulator } from "../simulation/simulator.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import { headerNotFound } from "./blockParams.ts";
import type { PendingRead } from "./blockReadSpec.ts";
import type { MethodChain, MethodInput } from "./method.ts";

type Execution = NonNullable<MethodChain["execution"]>;
type StateAt = (block: BlockId, hint: PrefetchHint | undefined) => StateSource;

/** A block by number or by hash. A hash alone may be on any branch. */
type BlockReference = { readonly number: bigint; readonly hash?: BlockId["hash"] } | { readonly hash: BlockId["hash"] };

type Input = Pick<MethodInput, "chain" | "context">;

/** Reads a header from the block ring, or from a node. A hash in the ring was not computed when it entered. */
const readHeader = async ({ chain, context }: Input, block: BlockReference): Promise<HeaderFields> => {
  const cached = "number" in block ? context.view.heads.header(block.number) : undefined;
  if (cached !== undefined && (block.hash === undefined || cached.hash === block.hash) && chain.ownHashes.has(cached)) {
    return cached;
  }
  const hash = block.hash ?? ("number" in block && cached ? context.view.heads.at(block.number)?.hash : undefined);
  const call =
    "number" in block && hash === undefined
      ? createCall("eth_getBlockByNumber", [formatQuantity(block.number), false])
      : createCall("eth_getBlockByHash", [hash, false]);
  const retention = hash === undefined ? "final" : "byHash";
  const canonicalParams = JSON.stringify([call.method, call.params]);
  const number = "number" in block ? { block: { number: block.number } } : {};
  const response = await chain.reads.request(
    { ...call, ...number, retention, canonicalParams, blockField: "hash" },
    context,
  );
  const header = parsedResult(response);
  if (!isFields(header)) {
    throw headerNotFound();
  }
  return header;
};

/** Returns the function that creates the state of one request. Its reads are charged to the client. */
const stateAtOf =
  ({ context }: Pick<Input, "context">, execution: Execution): StateAt =>
  (block, hint) =>
    execution.stateAt(block, hint, context);

/** Returns the base of an execution on the state after a sealed block. */
export const sealedExecutionBase = async (
  input: Input,
  execution: Execution,
  block: BlockReference,
  hint: PrefetchHint | undefined,
): Promise<ExecutionBase> => {
  const parent = parseBaseBlock(await readHeader(input, block));
  return { block: parent, source: stateAtOf(input, execution)({ number: parent.number, hash: parent.hash }, hint) };
};

const baseOfPending = (block: PendingBlock): BaseBlock => ({
  number: block.number,
  hash: block.hash,
  timestamp: block.environment.timestamp,
  miner: block.environment.feeRecipient,
  gasLimit: block.environment.gasLimit,
  gasUsed: block.gasUsed,
  difficulty: 0n,
  mixHash: block.environment.prevRandao,
  extraData: block.environment.extraData,
  baseFeePerGas: block.environment.baseFeePerGas,
  blobGasUsed: block.blobGasUsed,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: block.environment.parentBeaconBlockRoot,
});

/** A pending view with its newest block. */
interface PendingTop {
  readonly pending: PendingView;
  readonly newest: PendingBlock;
}

/**
 * Returns the base of a call in the pending block, on the state after its transactions.
 * Number, timestamp, base fee and prevRandao are those of the pending block.
 */
export const pendingCallBase = (
  input: Pick<Input, "context">,
  execution: Execution,
  { pending, newest }: PendingTop,
  hint: PrefetchHint | undefined,
): ExecutionBase => ({
  block: baseOfPending(newest),
  source: pendingState(pending, stateAtOf(input, execution)(pending.base, hint)),
});

/**
 * Returns the base of a simulation on the pending block.
 * The first simulated block has the number and timestamp of the pending block; with `next` it is its child.
 */
export const pendingSimulationBase = async (
  input: Input,
  execution: Execution,
  { pending, newest }: PendingTop,
  hint: PrefetchHint | undefined,
): Promise<ExecutionBase> => {
  const base = pendingCallBase(input, execution, { pending, newest }, hint);
  if (input.chain.pendingNumber === "next") {
    return base;
  }
  const previous = pending.blocks.at(-2);
  const parent = previous ? baseOfPending(previous) : parseBaseBlock(await readHeader(input, pending.base));
  return { ...base, block: parent, firstTimestamp: newest.environment.timestamp };
};

/** Counts the result of an execution until its response is sent. Throws RpcError (503) without room. */
export const held = (response: RpcResponse, { memory }: Pick<Context, "memory">): RpcResponse => {
  if (response.body instanceof Uint8Array && memory?.hold(response.body) === false) {
    throw overBudget();
  }
  return response;
};

type Run = "call" | "estimateGas" | "createAccessList";

/** Executes in the pending block on the view's state. Calls that must be forwarded go to the node's `pending`. */
const runPending =
  (method: string, run: Run) =>
  async ({ input, values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
    const { chain, context } = input;
    const { newest } = pending;
    if (newest === undefined) {
      return atBase();
    }
    const call = createCall(method, values);
    const onNode = () => chain.reads.request({ ...call, retention: "never", canonicalParams: "" }, context);
    if (chain.execution === undefined) {
      return onNode();
    }
    const { simulator }: { readonly simulator: Simulator } = chain.execution;
    const base = pendingCallBase(input, chain.execution, { pending, newest }, prefetchHintOfCall(values));
    try {
      return held(await simulator[run](paramsTextOf(call), base, context), context);
    } catch (error) {
      if (error instanceof MustForwardError) {
        return onNode();
      }
      throw error;
    }
  };

export const pendingCall = runPending("eth_call", "call");
export const pendingEstimate = runPending("eth_estimateGas", "estimateGas");
export const pendingAccessList = runPending("eth_createAccessList", "createAccessList");
