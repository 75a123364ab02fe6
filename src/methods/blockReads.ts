import { isNull } from "../core/isNull.ts";
import type { Answer, Question } from "../core/source.ts";
import type { PendingView } from "../core/view.ts";
import { type BlockParameter, parseBlockNumberOrTag, parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { atPending } from "./atPending.ts";
import type { Asked, Method } from "./chain.ts";
import { headerNotFound, throwUnknownBlock } from "./headerNotFound.ts";
import { inTrueView } from "./inTrueView.ts";
import { type Canonical, optional, type Read, type Reader, required } from "./reader.ts";
import { readParams } from "./readParams.ts";
import { type ResolvedBlock, resolveBlock } from "./resolveBlock.ts";

/** What is asked at a block: `recent` data commits to its block's hash; `state` is what the block left behind. */
export type BlockReadKind = "block" | "state";

export interface BlockRead {
  readonly name: string;
  /** One of them is made by `blockNumberOrTag` or `blockNumberOrTagOrHash`. */
  readonly params: readonly Reader[];
  readonly kind: BlockReadKind;
  /** The method that asks the same by the block's hash; without it `{blockHash}` takes the number's place (EIP-1898). */
  readonly byHashMethod?: string;
  /** The question cannot be put by hash; the answer is kept if it holds the block's hash. */
  readonly numberOnly?: true;
  readonly tells?: Question["tells"];
  /** A `null` at or below the head would be a missing block. */
  readonly mustExist?: true;
  /** The block may have nothing there: a `null` of the node's own pending block is its answer. */
  readonly mayLack?: true;
  /** What the view answers at `pending`; without it, the node's own pending. */
  readonly pending?: (read: PendingRead) => Promise<Answer>;
}

/** A read at `pending` that the view can answer. */
export interface PendingRead {
  readonly asked: Asked;
  readonly values: readonly Canonical[];
  readonly pending: PendingView;
  /** The same read at the sealed block that the pending ones stand on. */
  atBase(): Promise<Answer>;
}

const READ_BLOCK = "block";

/** Canonical texts of a block parameter: what `parseBlock` reads again without loss. */
const formatBlock = (block: BlockParameter): Canonical => {
  if ("tag" in block) return block.tag;
  if ("number" in block) return formatQuantity(block.number);
  return block.requireCanonical ? { blockHash: block.hash, requireCanonical: true } : { blockHash: block.hash };
};

const readNumberOrTag: Read = (value, name) => formatBlock(parseBlockNumberOrTag(value, name));
/** A bare hash stays one: not every node takes both forms. */
const readNumberOrTagOrHash: Read = (value, name) => {
  const block = parseBlockNumberOrTagOrHash(value, name);
  return typeof value === "string" && "hash" in block ? block.hash : formatBlock(block);
};

export const blockNumberOrTag: Reader = required(READ_BLOCK, readNumberOrTag);
export const blockNumberOrTagOrHash: Reader = required(READ_BLOCK, readNumberOrTagOrHash);
/** The block parameter may be left out: it is `latest` then (architecture.md, table of answers). */
export const stateBlock: Reader = optional(READ_BLOCK, readNumberOrTagOrHash, "latest");

/** The method of one such entry. */
export const blockRead = (entry: BlockRead): Method => {
  const position = entry.params.findIndex(({ name }) => name === READ_BLOCK);
  return {
    name: entry.name,
    kept: entry.kind,
    atPending: entry.pending ? "view" : "node",
    answer: async (asked) => {
      const values = readParams(asked.call.params, entry.params);
      const block = parseBlockNumberOrTagOrHash(values[position], READ_BLOCK);
      let { context } = asked;
      let resolved = resolveBlock(block, context.view.heads);
      if (resolved.kind === "aboveHead") {
        const heads = await asked.chain.heads.refresh();
        if (heads !== context.view.heads) context = { ...context, view: { heads } };
        resolved = resolveBlock(block, heads);
      }
      const { reads } = asked.chain;
      const at = (place: ResolvedBlock) => reads.request(questionAt(entry, values, position, block, place), context);
      if (resolved.kind === "pending") return atPending(entry, asked, values, at);
      if (resolved.kind !== "recent")
        return entry.kind === "state" ? at(resolved).catch(throwUnknownBlock) : at(resolved);
      const answer = await inTrueView(asked.chain, context, (now) => {
        const place = now === context ? resolved : resolveBlock(block, now.view.heads);
        return reads.request(questionAt(entry, values, position, block, place), now);
      });
      // The view holds the block, so that `null` would be untrue.
      if (entry.mustExist && isNull(answer)) throw headerNotFound();
      return answer;
    },
  };
};

/** The question of `entry` at a resolved block. */
export const questionAt = (
  entry: BlockRead,
  values: readonly Canonical[],
  position: number,
  asked: BlockParameter,
  block: ResolvedBlock,
): Question => {
  const put = (value: Canonical): Call => createCall(entry.name, values.with(position, value));
  const subject = JSON.stringify([entry.name, values.with(position, null)]);
  const rest = {
    subject,
    ...(entry.tells && { tells: entry.tells }),
    ...(entry.mustExist && { mustExist: true }),
  };
  switch (block.kind) {
    case "pending":
    case "unsaid":
      return { ...put(values[position] ?? null), lifetime: "never", subject };
    case "hash": {
      const call = put(values[position] ?? null);
      // What is asked of a canonical block alone has no answer once the block is not.
      if (entry.kind === "state" || canonicalOnly(asked)) return { ...call, lifetime: "never", subject };
      return {
        ...call,
        lifetime: "byHash",
        subject: JSON.stringify([entry.name, values.with(position, formatBlock(asked))]),
      };
    }
    case "aboveHead":
      return { ...put(formatQuantity(block.number)), lifetime: "never", subject };
    case "unknown":
      return { ...put(formatQuantity(block.number)), ...rest, lifetime: "never", block };
    case "final":
      if (canonicalOnly(asked)) return { ...put(formatBlock(asked)), ...rest, lifetime: "final", block };
      return { ...put(formatQuantity(block.number)), ...rest, lifetime: "final", block };
    case "recent": {
      const lifetime = entry.kind === "state" ? "recentState" : "recent";
      const byNumber = put(formatQuantity(block.number));
      if (entry.numberOnly) return { ...byNumber, ...rest, lifetime, block };
      const byHash = entry.byHashMethod
        ? createCall(entry.byHashMethod, values.with(position, block.hash))
        : put(canonicalOnly(asked) ? formatBlock(asked) : { blockHash: block.hash });
      return { ...byNumber, ...rest, lifetime, block, byHash };
    }
  }
};

const canonicalOnly = (block: BlockParameter): boolean => "hash" in block && block.requireCanonical;
