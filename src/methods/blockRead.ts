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

/** What is asked at a block: `recent` data commits to its block's hash; `state` is what the block left behind. */
export type BlockReadKind = "block" | "state";

export interface BlockRead {
  readonly name: string;
  /** One of them is made by `blockNumberOrTag` or `blockNumberOrTagOrHash`. */
  readonly params: readonly ParamSpec[];
  readonly kind: BlockReadKind;
  /** The method that asks the same by the block's hash; without it `{blockHash}` takes the number's place (EIP-1898). */
  readonly byHashMethod?: string;
  /** The question cannot be put by hash; the answer is kept if it holds the block's hash. */
  readonly byNumberOnly?: true;
  readonly blockField?: RpcRequest["blockField"];
  /** A `null` at or below the head would be a missing block. */
  readonly nullIsError?: true;
  /** The block may have nothing there: a `null` of the node's own pending block is its answer. */
  readonly isNullable?: true;
  /** What the view answers at `pending`; without it, the node's own pending. */
  readonly pending?: (read: PendingRead) => Promise<RpcResponse>;
}

/** A read at `pending` that the view can answer. */
export interface PendingRead {
  readonly asked: MethodInput;
  readonly values: readonly CanonicalJson[];
  readonly pending: PendingView;
  /** The same read at the sealed block that the pending ones stand on. */
  atBase(): Promise<RpcResponse>;
}

const READ_BLOCK = "block";

/** Canonical texts of a block parameter: what `parseBlock` reads again without loss. */
const formatBlock = (block: BlockParameter): CanonicalJson => {
  if ("tag" in block) return block.tag;
  if ("number" in block) return formatQuantity(block.number);
  return block.requireCanonical ? { blockHash: block.hash, requireCanonical: true } : { blockHash: block.hash };
};

const readNumberOrTag: Parser = (value, name) => formatBlock(parseBlockNumberOrTag(value, name));
/** A bare hash stays one: not every node takes both forms. */
const readNumberOrTagOrHash: Parser = (value, name) => {
  const block = parseBlockNumberOrTagOrHash(value, name);
  return typeof value === "string" && "hash" in block ? block.hash : formatBlock(block);
};

export const blockNumberOrTag: ParamSpec = required(READ_BLOCK, readNumberOrTag);
export const blockNumberOrTagOrHash: ParamSpec = required(READ_BLOCK, readNumberOrTagOrHash);
/** The block parameter may be left out: it is `latest` then (architecture.md, table of answers). */
export const stateBlock: ParamSpec = optional(READ_BLOCK, readNumberOrTagOrHash, "latest");

/** The method of one such entry. */
export const blockRead = (entry: BlockRead): Method => {
  const position = entry.params.findIndex(({ name }) => name === READ_BLOCK);
  return {
    name: entry.name,
    kept: entry.kind,
    atPending: entry.pending ? "view" : "node",
    answer: async (asked) => {
      const values = parseParams(asked.call.params, entry.params);
      const block = parseBlockNumberOrTagOrHash(values[position], READ_BLOCK);
      let { context } = asked;
      let resolved = resolveBlock(block, context.view.heads);
      if (resolved.kind === "aboveHead") {
        const heads = await asked.chain.heads.refresh();
        if (heads !== context.view.heads) context = { ...context, view: { heads } };
        resolved = resolveBlock(block, heads);
      }
      const { reads } = asked.chain;
      const at = (place: ResolvedBlock) =>
        reads.request(requestAtBlock(entry, values, position, block, place), context);
      if (resolved.kind === "pending") return atPending(entry, asked, values, at);
      if (resolved.kind !== "recent")
        return entry.kind === "state" ? at(resolved).catch(throwUnknownBlock) : at(resolved);
      const answer = await retryOnBranchChange(asked.chain, context, (now) => {
        const place = now === context ? resolved : resolveBlock(block, now.view.heads);
        return reads.request(requestAtBlock(entry, values, position, block, place), now);
      });
      // The view holds the block, so that `null` would be untrue.
      if (entry.nullIsError && isNull(answer)) throw headerNotFound();
      return answer;
    },
  };
};

/** The question of `entry` at a resolved block. */
export const requestAtBlock = (
  entry: BlockRead,
  values: readonly CanonicalJson[],
  position: number,
  asked: BlockParameter,
  block: ResolvedBlock,
): RpcRequest => {
  const put = (value: CanonicalJson): Call => createCall(entry.name, values.with(position, value));
  const canonicalParams = JSON.stringify([entry.name, values.with(position, null)]);
  const rest = {
    canonicalParams,
    ...(entry.blockField && { blockField: entry.blockField }),
    ...(entry.nullIsError && { nullIsError: true }),
  };
  switch (block.kind) {
    case "pending":
    case "unsaid":
      return { ...put(values[position] ?? null), retention: "never", canonicalParams };
    case "hash": {
      const call = put(values[position] ?? null);
      // What is asked of a canonical block alone has no answer once the block is not.
      if (entry.kind === "state" || canonicalOnly(asked)) return { ...call, retention: "never", canonicalParams };
      return {
        ...call,
        retention: "byHash",
        canonicalParams: JSON.stringify([entry.name, values.with(position, formatBlock(asked))]),
      };
    }
    case "aboveHead":
      return { ...put(formatQuantity(block.number)), retention: "never", canonicalParams };
    case "unknown":
      return { ...put(formatQuantity(block.number)), ...rest, retention: "never", block };
    case "final":
      if (canonicalOnly(asked)) return { ...put(formatBlock(asked)), ...rest, retention: "final", block };
      return { ...put(formatQuantity(block.number)), ...rest, retention: "final", block };
    case "recent": {
      const retention = entry.kind === "state" ? "recentState" : "recent";
      const byNumber = put(formatQuantity(block.number));
      if (entry.byNumberOnly) return { ...byNumber, ...rest, retention, block };
      const byHash = entry.byHashMethod
        ? createCall(entry.byHashMethod, values.with(position, block.hash))
        : put(canonicalOnly(asked) ? formatBlock(asked) : { blockHash: block.hash });
      return { ...byNumber, ...rest, retention, block, byHash };
    }
  }
};

const canonicalOnly = (block: BlockParameter): boolean => "hash" in block && block.requireCanonical;
