import type { BlockNumberOrTag } from "../ethereum/logFilter.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import type { Heads } from "./heads.ts";

/** Both ends are inclusive. */
export interface BlockRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** The blocks of one log query: sealed ones, then pending ones of the same view. Without both, the query has no result. */
export interface LogRange {
  readonly sealed?: BlockRange;
  readonly pending?: BlockRange;
}

export interface LogRangeOptions {
  readonly heads: Heads;
  /** The number of the newest pending block. `undefined` if `pending` means `latest`. */
  readonly pendingNumber?: bigint | undefined;
  /** The pending block is a node's own, not the view's. Then only the tag selects it, and no number does. */
  readonly isNodePending?: boolean;
  /** Limits the blocks of one query. `undefined` for no limit. */
  readonly maxBlocks?: number | undefined;
}

type Bound = BlockNumberOrTag | undefined;

const numberOf = (block: { readonly number: bigint } | undefined, tag: string): bigint => {
  if (block === undefined) {
    throw new RpcError(CODES.SERVER, `${tag} block not found`);
  }
  return block.number;
};

const resolve = (bound: BlockNumberOrTag, { latest, safe, finalized }: Heads): bigint => {
  if (typeof bound === "bigint") {
    return bound;
  }
  if (bound === "earliest") {
    return 0n;
  }
  if (bound === "safe") {
    return numberOf(safe, bound);
  }
  return bound === "finalized" ? numberOf(finalized, bound) : latest.number;
};

/** Throws RpcError if both bounds are numbers and the first is higher. No head makes such a range valid. */
export const rejectInvertedRange = (fromBlock: Bound, toBlock: Bound): void => {
  if (typeof fromBlock === "bigint" && typeof toBlock === "bigint" && fromBlock > toBlock) {
    throw invalidParams("invalid block range params");
  }
};

/** A number above the highest known block is an error: a client that pages by number would miss that block's later logs. */
const rejectAbove = (highest: bigint, head: bigint, bounds: readonly Bound[]): void => {
  for (const bound of bounds) {
    if (typeof bound === "bigint" && bound > highest) {
      throw invalidParams(`block range extends beyond current head block: requested ${bound}, head ${head}`);
    }
  }
};

const rejectTooLong = ({ from, to }: BlockRange, maxBlocks: number | undefined): void => {
  if (maxBlocks !== undefined && to - from + 1n > BigInt(maxBlocks)) {
    throw invalidParams(`fromBlock, toBlock: a range of ${to - from + 1n} blocks, at most ${maxBlocks} are allowed`);
  }
};

/** Resolves tags and defaults. `top` is the newest pending block's number, or the head's. */
const resolveBounds = (fromBlock: Bound, toBlock: Bound, heads: Heads, top: bigint): BlockRange => {
  const head = heads.latest.number;
  const isFromPending = fromBlock === "pending";
  // The tag selects all pending blocks of the view, from the first.
  const firstPending = top > head ? head + 1n : head;
  const from = isFromPending ? firstPending : resolve(fromBlock ?? "latest", heads);
  const endTag = toBlock ?? (isFromPending || from > head ? "pending" : "latest");
  return { from, to: endTag === "pending" ? top : resolve(endTag, heads) };
};

/** Splits a range at the head. */
const splitAtHead = ({ from, to }: BlockRange, head: bigint): LogRange => {
  if (to <= head) {
    return { sealed: { from, to } };
  }
  if (from > head) {
    return { pending: { from, to } };
  }
  return { sealed: { from, to: head }, pending: { from: head + 1n, to } };
};

/**
 * Resolves the bounds of a log query (docs/answers.md, Logs). Throws RpcError for a range that is inverted, too long, or
 * above the newest block. The pending blocks of a view are those above its head up to `pendingNumber`. A number selects
 * them as the tag does.
 */
export const resolveLogRange = (
  fromBlock: Bound,
  toBlock: Bound,
  { heads, pendingNumber, isNodePending = false, maxBlocks }: LogRangeOptions,
): LogRange => {
  const head = heads.latest.number;
  const top = pendingNumber !== undefined && pendingNumber > head ? pendingNumber : head;
  rejectInvertedRange(fromBlock, toBlock);
  rejectAbove(isNodePending ? head : top, head, [fromBlock, toBlock]);
  const range = resolveBounds(fromBlock, toBlock, heads, top);
  if (range.from > range.to) {
    if (fromBlock === "pending") {
      return {};
    }
    throw invalidParams("invalid block range params");
  }
  rejectTooLong(range, maxBlocks);
  return splitAtHead(range, head);
};
