import { isNull } from "../core/isNull.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import { isFields } from "../json/fields.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/awaitable.ts";
import type { Call } from "../jsonrpc/call.ts";
import { atPending, atPendingHash } from "./atPending.ts";
import { blockOfCanonical, READ_BLOCK } from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { headerNotFound, throwUnknownBlock } from "./headerNotFound.ts";
import type { Chain, Method, MethodInput } from "./method.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import type { ParsedRead } from "./parsedReads.ts";
import { parseParams } from "./parseParams.ts";
import { hasKnownFields } from "./readTransaction.ts";
import { type BlockReadInput, requestAtBlock, withCanonicalParams } from "./requestAtBlock.ts";
import { type ResolvedBlock, resolveBlock } from "./resolveBlock.ts";
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
  context: RequestContext,
  read: BlockReadInput,
  block: ResolvedBlock,
): Awaitable<RpcResponse> => {
  const { stateRead, answer } = read.spec;
  if (stateRead === undefined && answer === undefined) {
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
  if (answer === undefined || read.isLasting !== true) {
    return ask();
  }
  return answers?.request({ method: answer, key: read.canonicalParams, block, context: current }, ask) ?? ask();
};

/** Reads at a block that the view has. */
const readRecent = (
  { chain, context }: MethodInput,
  read: BlockReadInput,
  resolved: ResolvedBlock,
): Awaitable<RpcResponse> => {
  const { spec, parameter } = read;
  const request = (current: RequestContext): Awaitable<RpcResponse> => {
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
    const lasting = spec.answer === undefined ? {} : { isLasting: isLastingCall(values) };
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
