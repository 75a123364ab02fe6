import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { isNull, type RpcResponse } from "../core/rpcSource.ts";
import type { PendingBlock } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import { isFields } from "../json/fields.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/awaitable.ts";
import type { Call } from "../jsonrpc/call.ts";
import { blockOfCanonical, READ_BLOCK } from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Chain, Method, MethodInput } from "./method.ts";
import { type CanonicalJson, parseParams } from "./paramSpec.ts";
import type { ParsedRead } from "./parsedReads.ts";
import { unknownReceipts, viewResponse, withPendingMode } from "./pendingReads.ts";
import { hasKnownFields } from "./readTransaction.ts";
import { type BlockReadInput, requestAtBlock, withCanonicalParams } from "./requestAtBlock.ts";
import { headerNotFound, type ResolvedBlock, resolveBlock, throwUnknownBlock } from "./resolveBlock.ts";
import { isInRing } from "./stateRead.ts";

const NULL = Buffer.from("null");

/** The execution API returns null for an unknown block. Methods of geth's debug namespace return an error. */
const returnsNull = ({ kind, name }: BlockReadSpec): boolean => kind === "block" && name.startsWith("eth_");

/**
 * Refreshes the heads, because the block is above them, and reads at the block then. A block that is still above them
 * is unknown: one node's word about it must not reach a client before it is served as latest.
 */
const readAboveHead = async (input: MethodInput, read: BlockReadInput): Promise<RpcResponse> => {
  const { chain, context } = input;
  const heads = await chain.heads.refresh();
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

/** Whether the response to a call can hold for later blocks: it has no block overrides, authorization list or unknown field. */
const isLastingCall = ([call = null, , stateOverrides = null, blockOverrides]: readonly CanonicalJson[]): boolean =>
  blockOverrides === undefined &&
  isFields(call) &&
  call.authorizationList === undefined &&
  hasKnownFields(call, stateOverrides);

/** Reads at a block: from known state values, or else from the cache and the nodes. */
const requestState = (
  chain: Chain,
  context: Context,
  read: BlockReadInput,
  block: ResolvedBlock,
): Awaitable<RpcResponse> => {
  const { stateRead, cachedCall } = read.spec;
  if (stateRead === undefined && cachedCall === undefined) {
    return chain.reads.request(requestAtBlock(read, block), context);
  }
  const current = context.noCache === true ? context.with({ bypassCache: true }) : context;
  const ask = () => chain.reads.request(requestAtBlock(read, block), current);
  if (!isInRing(block)) {
    return ask();
  }
  const { state, answers } = chain;
  if (stateRead !== undefined) {
    const { method, keyOf } = stateRead;
    return state?.request({ method, key: keyOf(read.values), block, context: current }, ask) ?? ask();
  }
  if (cachedCall === undefined || read.isLasting !== true) {
    return ask();
  }
  return answers?.request({ method: cachedCall, key: read.canonicalParams, block, context: current }, ask) ?? ask();
};

/** Reads at a block that the view has. */
const readRecent = (
  { chain, context }: MethodInput,
  read: BlockReadInput,
  resolved: ResolvedBlock,
): Awaitable<RpcResponse> => {
  const { spec, parameter } = read;
  const request = (current: Context): Awaitable<RpcResponse> => {
    const block = current === context ? resolved : resolveBlock(parameter, current.view.heads);
    return requestState(chain, current, read, block);
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

/** Whether the block may be pending. A pending block is not canonical. */
const isPendingHash = (
  { parameter }: BlockReadInput,
  resolved: ResolvedBlock,
): resolved is Extract<ResolvedBlock, { readonly kind: "hash" }> =>
  resolved.kind === "hash" && "hash" in parameter && !parameter.requireCanonical;

const readAt = (input: MethodInput, read: BlockReadInput, resolved: ResolvedBlock): Awaitable<RpcResponse> => {
  const { spec, values } = read;
  if (resolved.kind === "recent") {
    return readRecent(input, read, resolved);
  }
  const request = (block: ResolvedBlock) => requestState(input.chain, input.context, read, block);
  if (resolved.kind === "pending") {
    return atPending(spec, input, values, async (block) => request(block));
  }
  const ofPending = isPendingHash(read, resolved)
    ? atPendingHash(spec, input, values, { hash: resolved.hash, readAt: async (block) => request(block) })
    : undefined;
  if (ofPending !== undefined) {
    return ofPending;
  }
  const response = request(resolved);
  return spec.kind === "state" && response instanceof Promise ? response.catch(throwUnknownBlock) : response;
};

/** Creates a method that reads at a block. */
export const blockRead = (spec: BlockReadSpec): Method => {
  const position = spec.params.findIndex(({ name }) => name === READ_BLOCK);
  const parse = ({ params }: Call): ParsedRead => {
    const values = parseParams(params, spec.params);
    const parameter = blockOfCanonical(values[position]);
    const lasting = spec.cachedCall === undefined ? {} : { isLasting: isLastingCall(values) };
    return { ...withCanonicalParams({ spec, values, position, parameter }), ...lasting };
  };
  return {
    name: spec.name,
    retention: spec.kind,
    atPending: spec.pending ? "view" : "node",
    ...(spec.isSlow && { isSlow: true }),
    handle: (input) => {
      const { values, parameter, canonicalParams, isLasting } = input.chain.parsedReads.get(input.call, parse);
      const read: BlockReadInput = { spec, values, position, parameter, canonicalParams, isLasting };
      const resolved = resolveBlock(parameter, input.context.view.heads);
      return resolved.kind === "aboveHead" ? readAboveHead(input, read) : readAt(input, read, resolved);
    },
  };
};

/**
 * Answers a read at `pending`: from the view, or from the node's pending block, or at latest.
 * A missing pending block is never `null` (docs/answers.md, Blocks and pending).
 */
const atPending = async (
  spec: BlockReadSpec,
  input: MethodInput,
  values: readonly CanonicalJson[],
  readAt: (block: ResolvedBlock) => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const { pending, heads } = input.context.view;
  const readLatest = () => readAt(resolveBlock({ tag: "latest" }, heads));
  if (pending === undefined) {
    return readLatest();
  }
  const respond = async (): Promise<RpcResponse> => {
    const source = spec.kind === "state" ? pending.stateFrom : pending.blocksFrom;
    if (source === "view" && spec.pending) {
      const { base } = pending;
      const atBase = () => readAt(resolveBlock({ hash: base.hash, requireCanonical: false }, heads));
      return spec.pending({ input, values, pending, atBase });
    }
    return source === "latest"
      ? readLatest()
      : readNodePending(spec, heads, () => readAt({ kind: "pending" }), readLatest);
  };
  return withPendingMode(pending.mode, respond(), input.context);
};

/**
 * Answers a read by the hash of a pending block that was shown in the last 10 s, from the view of that moment.
 * Returns undefined if there is none: nodes answer then.
 */
const atPendingHash = (
  spec: BlockReadSpec,
  input: MethodInput,
  values: readonly CanonicalJson[],
  { hash, readAt }: { readonly hash: Hash; readonly readAt: (block: ResolvedBlock) => Promise<RpcResponse> },
): Promise<RpcResponse> | undefined => {
  const { pending: current, heads } = input.context.view;
  if (current === undefined || spec.pending === undefined) {
    return undefined;
  }
  if (spec.kind === "block") {
    const block = current.byHash(hash);
    return block && withPendingMode(current.mode, receiptsOfBlock(block), input.context);
  }
  const pending = current.atHash(hash);
  if (pending === undefined) {
    return undefined;
  }
  const base = { hash: pending.base.hash, requireCanonical: false };
  const atBase = () => readAt(resolveBlock(base, heads));
  return withPendingMode(current.mode, spec.pending({ input, values, pending, atBase }), input.context);
};

const receiptsOfBlock = async (block: PendingBlock): Promise<RpcResponse> => {
  const body = block.receipts();
  if (body === undefined) {
    throw unknownReceipts(block);
  }
  return viewResponse(body);
};

/** Reads the node's pending block. If there is none, or it is not above the head, it reads latest instead. */
const readNodePending = async (
  spec: BlockReadSpec,
  heads: Heads,
  readPending: () => Promise<RpcResponse>,
  readLatest: () => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const response = await readPending().catch((error: unknown) => {
    if (error instanceof NodeError && NO_PENDING_BLOCK.has(error.kind)) {
      return undefined;
    }
    throw error;
  });
  if (response === undefined || (isNull(response) && !spec.isNullable)) {
    return readLatest();
  }
  const number = spec.blockField === "hash" ? numberIn(response) : undefined;
  return number !== undefined && number <= heads.latest.number ? readLatest() : response;
};

const NO_PENDING_BLOCK: ReadonlySet<NodeErrorKind> = new Set(["tagUnsupported", "missingData"]);

const decoder = new TextDecoder();
/** Returns the `number` of a block response. */
const numberIn = ({ body }: RpcResponse): bigint | undefined => {
  if (!(body instanceof Uint8Array)) {
    return undefined;
  }
  const block: unknown = JSON.parse(decoder.decode(body));
  return isFields(block) && typeof block.number === "string" ? BigInt(block.number) : undefined;
};
