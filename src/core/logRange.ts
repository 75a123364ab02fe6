import type { BlockNumberOrTag } from "../ethereum/logFilter.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import type { Heads } from "./heads.ts";

export interface BlockRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** Which blocks one query reads: sealed ones, then pending ones of the same view. Both undefined: nothing. */
export interface LogRange {
  readonly sealed?: BlockRange;
  readonly pending?: BlockRange;
}

export interface LogRangeOptions {
  readonly heads: Heads;
  /** The number of the newest pending block; undefined where `pending` stands for `latest`. */
  readonly pendingNumber?: bigint | undefined;
  /** The pending block is a node's own, not the view's: only the tag selects it, no number does. */
  readonly isNodePending?: boolean;
  /** Blocks of one query at most; undefined for any. */
  readonly maxBlocks?: number | undefined;
}

const named = (block: { readonly number: bigint } | undefined, tag: string): bigint => {
  if (block === undefined) throw new RpcError(CODES.SERVER, `${tag} block not found`);
  return block.number;
};

const resolve = (bound: BlockNumberOrTag, { latest, safe, finalized }: Heads): bigint => {
  if (typeof bound === "bigint") return bound;
  if (bound === "earliest") return 0n;
  if (bound === "safe") return named(safe, bound);
  return bound === "finalized" ? named(finalized, bound) : latest.number;
};

/** Whatever the heads are, such a range holds nothing. */
export const refuseInverted = (
  fromBlock: BlockNumberOrTag | undefined,
  toBlock: BlockNumberOrTag | undefined,
): void => {
  if (typeof fromBlock === "bigint" && typeof toBlock === "bigint" && fromBlock > toBlock) {
    throw invalidParams("invalid block range params");
  }
};

/**
 * The rules of architecture.md's table of answers for getLogs. The pending blocks of a view are those above its head, up to
 * `pendingNumber`; a number among them is as good as the tag. Any other number above the head is an error: that block may
 * have logs later, and a client that pages by number would miss them.
 */
export const resolveLogRange = (
  fromBlock: BlockNumberOrTag | undefined,
  toBlock: BlockNumberOrTag | undefined,
  { heads, pendingNumber, isNodePending = false, maxBlocks }: LogRangeOptions,
): LogRange => {
  const head = heads.latest.number;
  const top = pendingNumber !== undefined && pendingNumber > head ? pendingNumber : head;
  refuseInverted(fromBlock, toBlock);
  const highest = isNodePending ? head : top;
  for (const bound of [fromBlock, toBlock]) {
    if (typeof bound === "bigint" && bound > highest) {
      throw invalidParams(`block range extends beyond current head block: requested ${bound}, head ${head}`);
    }
  }

  const fromPending = fromBlock === "pending";
  // The first pending block, so that a view of several is read whole.
  const from = fromPending ? (top > head ? head + 1n : head) : resolve(fromBlock ?? "latest", heads);
  const toTag = toBlock ?? (fromPending || from > head ? "pending" : "latest");
  const to = toTag === "pending" ? top : resolve(toTag, heads);
  if (from > to) {
    if (fromPending) return {};
    throw invalidParams("invalid block range params");
  }
  if (maxBlocks !== undefined && to - from + 1n > BigInt(maxBlocks)) {
    throw invalidParams(`fromBlock, toBlock: a range of ${to - from + 1n} blocks, at most ${maxBlocks} are allowed`);
  }
  if (to <= head) return { sealed: { from, to } };
  if (from > head) return { pending: { from, to } };
  return { sealed: { from, to: head }, pending: { from: head + 1n, to } };
};
