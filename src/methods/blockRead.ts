import { isNull } from "../core/isNull.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { PendingView } from "../core/view.ts";
import { type BlockParameter, parseBlockNumberOrTag, parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { atPending } from "./atPending.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { headerNotFound, throwUnknownBlock } from "./headerNotFound.ts";
import type { Method, MethodInput } from "./method.ts";
import { type CanonicalJson, optional, type ParamSpec, type Parser, required } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";
import { type ResolvedBlock, resolveBlock } from "./resolveBlock.ts";

/** `block`: data of the block itself, which its hash commits to. `state`: the state after the block. */
export type BlockReadKind = "block" | "state";

export interface BlockRead {
  readonly name: string;
  /** One of them is `blockNumberOrTag`, `blockNumberOrTagOrHash` or `stateBlock`. */
  readonly params: readonly ParamSpec[];
  readonly kind: BlockReadKind;
  /** The equivalent method by block hash. Without it, `{blockHash}` replaces the number (EIP-1898). */
  readonly byHashMethod?: string;
  /** The method has no form by hash. The response is cached if it contains the block's hash. */
  readonly byNumberOnly?: true;
  readonly blockField?: RpcRequest["blockField"];
  /** At or below the head, `null` is an error, because the block exists. */
  readonly nullIsError?: true;
  /** `null` is a valid result at the node's pending block. */
  readonly isNullable?: true;
  /** Answers from the view at `pending`. Without it, the node's pending block answers. */
  readonly pending?: (read: PendingRead) => Promise<RpcResponse>;
}

/** The input of a read at `pending` that the view can answer. */
export interface PendingRead {
  readonly asked: MethodInput;
  readonly values: readonly CanonicalJson[];
  readonly pending: PendingView;
  /** Sends the same read at the view's base block. */
  atBase(): Promise<RpcResponse>;
}

const READ_BLOCK = "block";

/** Formats a block parameter in its canonical form, which can be parsed again without loss. */
const formatBlock = (block: BlockParameter): CanonicalJson => {
  if ("tag" in block) return block.tag;
  if ("number" in block) return formatQuantity(block.number);
  return block.requireCanonical ? { blockHash: block.hash, requireCanonical: true } : { blockHash: block.hash };
};

const readNumberOrTag: Parser = (value, name) => formatBlock(parseBlockNumberOrTag(value, name));
/** A hash string stays a string, because not every node accepts both forms. */
const readNumberOrTagOrHash: Parser = (value, name) => {
  const block = parseBlockNumberOrTagOrHash(value, name);
  return typeof value === "string" && "hash" in block ? block.hash : formatBlock(block);
};

export const blockNumberOrTag: ParamSpec = required(READ_BLOCK, readNumberOrTag);
export const blockNumberOrTagOrHash: ParamSpec = required(READ_BLOCK, readNumberOrTagOrHash);
/** An optional block parameter; the default is `latest` (docs/answers.md, Blocks and pending). */
export const stateBlock: ParamSpec = optional(READ_BLOCK, readNumberOrTagOrHash, "latest");

/** One block read with its parameters. */
export interface BlockReadInput {
  readonly entry: BlockRead;
  readonly values: readonly CanonicalJson[];
  /** Index of the block parameter in `values`. */
  readonly position: number;
  /** The block parameter. */
  readonly parameter: BlockParameter;
}

/** Creates a method that reads at a block. */
export const blockRead = (entry: BlockRead): Method => {
  const position = entry.params.findIndex(({ name }) => name === READ_BLOCK);
  return {
    name: entry.name,
    kept: entry.kind,
    atPending: entry.pending ? "view" : "node",
    answer: async (asked) => {
      const values = parseParams(asked.call.params, entry.params);
      const parameter = parseBlockNumberOrTagOrHash(values[position], READ_BLOCK);
      const input: BlockReadInput = { entry, values, position, parameter };
      let { context } = asked;
      let resolved = resolveBlock(parameter, context.view.heads);
      if (resolved.kind === "aboveHead") {
        const heads = await asked.chain.heads.refresh();
        if (heads !== context.view.heads) context = { ...context, view: { heads } };
        resolved = resolveBlock(parameter, heads);
      }
      const { reads } = asked.chain;
      const readAt = (block: ResolvedBlock) => reads.request(requestAtBlock(input, block), context);
      if (resolved.kind === "pending") return atPending(entry, asked, values, readAt);
      if (resolved.kind !== "recent")
        return entry.kind === "state" ? readAt(resolved).catch(throwUnknownBlock) : readAt(resolved);
      const answer = await retryOnBranchChange(asked.chain, context, (current) => {
        const block = current === context ? resolved : resolveBlock(parameter, current.view.heads);
        return reads.request(requestAtBlock(input, block), current);
      });
      // The block is in the view, so that `null` is wrong.
      if (entry.nullIsError && isNull(answer)) throw headerNotFound();
      return answer;
    },
  };
};

/** Returns the request to the nodes, with its retention class, for a read at a resolved block. */
export const requestAtBlock = (input: BlockReadInput, block: ResolvedBlock): RpcRequest => {
  switch (block.kind) {
    case "pending":
    case "unsaid":
      return { ...withParameter(input), retention: "never", canonicalParams: canonicalParamsOf(input) };
    case "hash":
      return atHash(input);
    case "aboveHead":
      return {
        ...withBlock(input, formatQuantity(block.number)),
        retention: "never",
        canonicalParams: canonicalParamsOf(input),
      };
    case "unknown":
      return { ...withBlock(input, formatQuantity(block.number)), ...commonFields(input), retention: "never", block };
    case "final": {
      const { parameter } = input;
      const value = canonicalOnly(parameter) ? formatBlock(parameter) : formatQuantity(block.number);
      return { ...withBlock(input, value), ...commonFields(input), retention: "final", block };
    }
    case "recent":
      return atRecent(input, block);
  }
};

const canonicalOnly = (block: BlockParameter): boolean => "hash" in block && block.requireCanonical;

const withBlock = ({ entry, values, position }: BlockReadInput, value: CanonicalJson): Call =>
  createCall(entry.name, values.with(position, value));

const withParameter = (input: BlockReadInput): Call => withBlock(input, input.values[input.position] ?? null);

/** The canonical params without the block. */
const canonicalParamsOf = ({ entry, values, position }: BlockReadInput): string =>
  JSON.stringify([entry.name, values.with(position, null)]);

const commonFields = (input: BlockReadInput): Pick<RpcRequest, "canonicalParams" | "blockField" | "nullIsError"> => ({
  canonicalParams: canonicalParamsOf(input),
  ...(input.entry.blockField && { blockField: input.entry.blockField }),
  ...(input.entry.nullIsError && { nullIsError: true }),
});

/** A read at a hash that is not in the block ring. */
const atHash = (input: BlockReadInput): RpcRequest => {
  const { entry, values, position, parameter } = input;
  const call = withParameter(input);
  // A read with requireCanonical has no result once the block is not canonical any more.
  if (entry.kind === "state" || canonicalOnly(parameter)) {
    return { ...call, retention: "never", canonicalParams: canonicalParamsOf(input) };
  }
  const canonicalParams = JSON.stringify([entry.name, values.with(position, formatBlock(parameter))]);
  return { ...call, retention: "byHash", canonicalParams };
};

const atRecent = (input: BlockReadInput, block: Extract<ResolvedBlock, { readonly kind: "recent" }>): RpcRequest => {
  const { entry, values, position, parameter } = input;
  const retention = entry.kind === "state" ? "recentState" : "recent";
  const byNumber = withBlock(input, formatQuantity(block.number));
  if (entry.byNumberOnly) return { ...byNumber, ...commonFields(input), retention, block };
  const byHash = entry.byHashMethod
    ? createCall(entry.byHashMethod, values.with(position, block.hash))
    : withBlock(input, canonicalOnly(parameter) ? formatBlock(parameter) : { blockHash: block.hash });
  return { ...byNumber, ...commonFields(input), retention, block, byHash };
};
