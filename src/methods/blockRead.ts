import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RequestBlock, RetentionClass } from "../core/retention.ts";
import { isNull, type RpcRequest, type RpcResponse } from "../core/rpcSource.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { type Awaitable, type Call, createCall, whenKnown } from "../jsonrpc/call.ts";
import type { AskCall } from "../state/calls/callCache.ts";
import {
  blockOfCanonical,
  formatBlockParameter,
  headerNotFound,
  isInRing,
  READ_BLOCK,
  type ResolvedBlock,
  resolveBlock,
  throwUnknownBlock,
} from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { HIDDEN, isHidden } from "./hiddenBlocks.ts";
import type { Method, MethodChain, MethodInput } from "./method.ts";
import { type CanonicalJson, parseParams } from "./paramSpec.ts";
import { atPending, atPendingHash } from "./pendingReads.ts";
import { hasKnownFields } from "./readTransaction.ts";

/** One call of a block read. */
interface BlockReadInput {
  readonly spec: BlockReadSpec;
  readonly values: readonly CanonicalJson[];
  /** Index of the block parameter in `values`. */
  readonly position: number;
  /** The block parameter. */
  readonly parameter: BlockParameter;
  /** See `RpcRequest`. */
  readonly canonicalParams: string;
  /** The response can hold for later blocks. */
  readonly isLasting: boolean;
}

const NULL = Buffer.from("null");
const LATEST: BlockParameter = { tag: "latest" };

/** Creates a method that reads at a block. */
export const blockRead = (spec: BlockReadSpec): Method => {
  const parse = ({ params }: Call): BlockReadInput => blockReadOf(spec, parseParams(params, spec.params));
  return {
    name: spec.name,
    retention: spec.kind,
    atPending: spec.pending ? "view" : "node",
    ...(spec.isSlow && { isSlow: true }),
    prove: spec.prove,
    handle: (input) => {
      const read = input.chain.parsedReads.get(input.call, parse);
      const resolved = resolveBlock(read.parameter, input.context.view.heads);
      if (resolved.kind === "aboveHead") {
        return readAboveHead(input, read);
      }
      return readWithHeader(input, read, resolved) ?? readAt(input, read, resolved);
    },
  };
};

/** Creates a read from canonical parameters. */
export const blockReadOf = (spec: BlockReadSpec, values: readonly CanonicalJson[]): BlockReadInput => {
  const position = spec.params.findIndex(({ name }) => name === READ_BLOCK);
  return {
    spec,
    values,
    position,
    parameter: blockOfCanonical(values[position]),
    canonicalParams: JSON.stringify([spec.name, values.with(position, null)]),
    isLasting: spec.cachedCall !== undefined && isLastingCall(values),
  };
};

/** Whether the response to a call can hold for later blocks: it has no block overrides, authorization list or unknown field. */
const isLastingCall = ([call = null, , stateOverrides = null, blockOverrides]: readonly CanonicalJson[]): boolean =>
  blockOverrides === undefined &&
  isFields(call) &&
  call.authorizationList === undefined &&
  hasKnownFields(call, stateOverrides);

/** Reads headers first that the block ring lacks, as after a start. Undefined if the ring has them, or the block is too old. */
const readWithHeader = (
  input: MethodInput,
  read: BlockReadInput,
  resolved: ResolvedBlock,
): Promise<RpcResponse> | undefined => {
  const { chain, context } = input;
  const needed = neededHeaders(resolved, read.spec, context.view.heads);
  const reached = needed && chain.heads.reach(needed, context);
  return reached?.then((view) =>
    readAt({ ...input, context: context.with({ view }) }, read, resolveBlock(read.parameter, view.heads)),
  );
};

/**
 * Returns the blocks whose headers a read needs, if the block ring lacks the block. A hash of a state may be of any of them.
 * A final block is its own header: an indexer does not pay for each block twice.
 */
const neededHeaders = (
  resolved: ResolvedBlock,
  { kind, blockField }: BlockReadSpec,
  heads: Heads,
): BlockRange | undefined => {
  switch (resolved.kind) {
    case "outsideRing":
      return { from: resolved.number, to: resolved.number };
    case "final":
      return resolved.hash === undefined && blockField !== "hash"
        ? { from: resolved.number, to: resolved.number }
        : undefined;
    case "hash":
      return kind === "state" ? { from: 0n, to: heads.latest.number } : undefined;
    default:
      return undefined;
  }
};

/**
 * Refreshes the heads, because the block is above them, and reads at the block then. A block that is still above them
 * is unknown: before it is served as latest, no node's answer about it must reach a client.
 */
const readAboveHead = async (input: MethodInput, read: BlockReadInput): Promise<RpcResponse> => {
  const { chain, context } = input;
  const heads = await chain.heads.refresh(context);
  const block = resolveBlock(read.parameter, heads);
  if (block.kind === "aboveHead") {
    if (returnsNull(read.spec)) {
      return { body: NULL, status: { hit: "local" } };
    }
    throw headerNotFound();
  }
  const current = heads === context.view.heads ? context : context.with({ view: { heads } });
  return readAt({ ...input, context: current }, read, block);
};

/** The execution API returns null for an unknown block. Methods of geth's debug namespace return an error. */
const returnsNull = ({ kind, name }: BlockReadSpec): boolean => kind === "block" && name.startsWith("eth_");

const readAt = (input: MethodInput, read: BlockReadInput, resolved: ResolvedBlock): Awaitable<RpcResponse> => {
  const { spec, values } = read;
  if (resolved.kind === "recent") {
    return readRecent(input, read, resolved);
  }
  const request = (block: ResolvedBlock) => readKnownOrAsk(input.chain, input.context, read, block);
  if (resolved.kind === "pending") {
    const atLatest = { ...read, parameter: LATEST };
    return atPending(spec, input, values, {
      readAt: async (block) => request(block),
      readLatest: async () => readAt(input, atLatest, resolveBlock(LATEST, input.context.view.heads)),
    });
  }
  const ofPending = isPendingHash(read, resolved)
    ? atPendingHash(spec, input, values, { hash: resolved.hash, readAt: async (block) => request(block) })
    : undefined;
  if (ofPending !== undefined) {
    return ofPending;
  }
  if (resolved.kind === "hash" && returnsNull(spec) && isHidden(input.context, resolved.hash)) {
    return HIDDEN;
  }
  const response = request(resolved);
  return spec.kind === "state" && response instanceof Promise ? response.catch(throwUnknownBlock) : response;
};

/** Whether the block may be pending. A pending block is not canonical. */
const isPendingHash = (
  { parameter }: BlockReadInput,
  resolved: ResolvedBlock,
): resolved is Extract<ResolvedBlock, { readonly kind: "hash" }> =>
  resolved.kind === "hash" && "hash" in parameter && !parameter.requireCanonical;

/** Reads at a block that the view has. */
const readRecent = (
  { chain, context }: MethodInput,
  read: BlockReadInput,
  resolved: ResolvedBlock,
): Awaitable<RpcResponse> => {
  const { spec, parameter } = read;
  const request = (current: Context): Awaitable<RpcResponse> => {
    const block = current === context ? resolved : resolveBlock(parameter, current.view.heads);
    return readKnownOrAsk(chain, current, read, block);
  };
  const response = retryOnBranchChange(chain, context, request);
  if (!spec.nullIsError) {
    return response;
  }
  return whenKnown(response, (found) => {
    // The block is in the view, so that `null` is wrong.
    if (isNull(found)) {
      throw headerNotFound();
    }
    return found;
  });
};

/** Reads at a block: from known values (StateReads) or results of calls (CallCache), or else from the cache and the nodes. */
const readKnownOrAsk = (
  chain: MethodChain,
  context: Context,
  read: BlockReadInput,
  block: ResolvedBlock,
): Awaitable<RpcResponse> => {
  const { stateRead, cachedCall } = read.spec;
  if (stateRead === undefined && cachedCall === undefined) {
    return chain.reads.request(requestAtBlock(read, block), context);
  }
  const current = context.noCache === true ? context.with({ bypassCache: true }) : context;
  const ask: AskCall = ({ ending, isFirst = false } = {}) => {
    const request = requestAtBlock(read, block);
    return chain.reads.request(
      isFirst ? { ...request, isFirst } : request,
      ending ? current.with({ bypassCache: true, ending }) : current,
    );
  };
  if (!isInRing(block)) {
    return ask();
  }
  const { state, callCache } = chain;
  if (stateRead !== undefined) {
    const { method, keyOf } = stateRead;
    return state?.request({ method, key: keyOf(read.values), block, context: current }, ask) ?? ask();
  }
  if (cachedCall === undefined || !read.isLasting) {
    return ask();
  }
  return callCache?.request({ method: cachedCall, key: read.canonicalParams, block, context: current }, ask) ?? ask();
};

/** Returns the request to the nodes, with its retention class. Throws RpcError if the block is above the head. */
export const requestAtBlock = (read: BlockReadInput, block: ResolvedBlock): RpcRequest => {
  switch (block.kind) {
    case "pending":
    case "tagUnavailable":
      return uncached(read, blockValue(read));
    case "hash":
      return atHash(read);
    case "aboveHead":
      throw headerNotFound();
    case "outsideRing":
      return atNumber(read, formatQuantity(block.number), "never", block);
    case "final": {
      const { parameter } = read;
      const value = canonicalOnly(parameter) ? formatBlockParameter(parameter) : formatQuantity(block.number);
      return atNumber(read, value, "final", block);
    }
    case "recent":
      return atRecent(read, block);
  }
};

const canonicalOnly = (block: BlockParameter): boolean => "hash" in block && block.requireCanonical;

const blockValue = ({ values, position }: BlockReadInput): CanonicalJson => values[position] ?? null;

/** A request with this block parameter whose response is never cached. */
const uncached = ({ spec, values, position, canonicalParams }: BlockReadInput, value: CanonicalJson): RpcRequest => ({
  method: spec.name,
  params: values.with(position, value),
  retention: "never",
  canonicalParams,
});

/** Without spreads, because each miss of a read at a block creates one. */
const atNumber = (
  { spec, values, position, canonicalParams }: BlockReadInput,
  value: CanonicalJson,
  retention: RetentionClass,
  block: RequestBlock,
): RpcRequest => {
  const request: Writable<RpcRequest> = {
    method: spec.name,
    params: values.with(position, value),
    retention,
    canonicalParams,
    block,
  };
  if (spec.blockField !== undefined) {
    request.blockField = spec.blockField;
  }
  if (spec.nullIsError === true) {
    request.nullIsError = true;
  }
  return request;
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A read at a hash that is not in the block ring. */
const atHash = (read: BlockReadInput): RpcRequest => {
  const { spec, values, position, parameter } = read;
  const request = uncached(read, blockValue(read));
  // A read with requireCanonical has no result once the block is not canonical any more.
  if (spec.kind === "state" || canonicalOnly(parameter)) {
    return request;
  }
  const canonicalParams = JSON.stringify([spec.name, values.with(position, formatBlockParameter(parameter))]);
  return { ...request, retention: "byHash", canonicalParams };
};

const atRecent = (read: BlockReadInput, block: Extract<ResolvedBlock, { readonly kind: "recent" }>): RpcRequest => {
  const { spec, values, position, parameter } = read;
  const retention = spec.kind === "state" ? "recentState" : "recent";
  const request: Writable<RpcRequest> = atNumber(read, formatQuantity(block.number), retention, block);
  if (spec.byNumberOnly === true) {
    return request;
  }
  request.byHash = spec.byHashMethod
    ? createCall(spec.byHashMethod, values.with(position, block.hash))
    : createCall(
        spec.name,
        values.with(position, canonicalOnly(parameter) ? formatBlockParameter(parameter) : { blockHash: block.hash }),
      );
  return request;
};
