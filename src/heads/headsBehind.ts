import type { HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { View } from "../core/view.ts";
import { larger, smaller } from "../ethereum/bigintOrder.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";

/** The block ring has its newest blocks with their headers, far more than these. */
export const MAX_CONFIRMATIONS = 64;

/** Returns the heads that a chain had when its newest block was `confirmations` blocks lower. Undefined if that block is not known. */
const findHeads = (heads: Heads, confirmations: number): Heads | undefined => {
  const wanted = heads.latest.number - BigInt(confirmations);
  const number = wanted > 0n ? wanted : 0n;
  const latest = heads.at(number);
  if (latest === undefined) {
    return undefined;
  }
  const upTo = (block: Heads["safe"]): Heads["safe"] =>
    block !== undefined && block.number > number ? { number, hash: latest.hash } : block;
  return {
    latest,
    isAgreed: heads.isAgreed,
    safe: upTo(heads.safe),
    finalized: upTo(heads.finalized),
    oldest: heads.oldest,
    at: (at) => (at > number ? undefined : heads.at(at)),
    header: (at) => (at > number ? undefined : heads.header(at)),
  };
};

const blocksAbove = ({ at, latest }: Heads, number: bigint): readonly RingBlock[] => {
  const blocks: RingBlock[] = [];
  for (let next = number + 1n; next <= latest.number; next++) {
    const block = at(next);
    if (block !== undefined) {
      blocks.push(block);
    }
  }
  return blocks;
};

/** Returns the difference between two heads. */
const changeBetween = (before: Heads, heads: Heads): HeadChange => {
  if (before.latest.hash === heads.latest.hash) {
    return { heads, from: [], to: [] };
  }
  const oldest = larger(before.oldest, heads.oldest);
  let number = smaller(before.latest.number, heads.latest.number);
  while (number >= oldest && before.at(number)?.hash !== heads.at(number)?.hash) {
    number--;
  }
  return { heads, from: blocksAbove(before, number), to: blocksAbove(heads, number) };
};

/** Whether the newest block of the heads is an ancestor of that of the others. */
const areBelow = ({ latest }: Heads, others: Heads): boolean =>
  latest.number < others.latest.number && others.at(latest.number)?.hash === latest.hash;

/** The heads of a chain, as its followers read them. */
interface FollowedHeads {
  current(): Heads | undefined;
  subscribe(listener: (change: HeadChange) => void): () => void;
}

/** The views of clients that want blocks with confirmations. The newest one of each number of confirmations is shared by requests. */
export class HeadsBehind {
  readonly #newest = new Map<number, { readonly of: Heads; readonly view: View | undefined }>();

  /** Returns the view of the heads that are `confirmations` blocks behind. Throws RpcError (503) if that block is not known yet. */
  view(heads: Heads, confirmations: number): View {
    const view = this.find(heads, confirmations);
    if (view === undefined) {
      throw unavailable(`the newest ${confirmations} blocks of the chain are not known yet`);
    }
    return view;
  }

  /**
   * Follows the heads that are `confirmations` blocks behind, for one listener. Once it was told of a block, lower heads of the
   * same branch are not followed: no block is repeated, and each stays in `current()`.
   */
  follow(heads: FollowedHeads, confirmations: number): FollowedHeads {
    let last: Heads | undefined;
    const find = (of: Heads | undefined): Heads | undefined => {
      const next = of && this.find(of, confirmations)?.heads;
      return next !== undefined && last !== undefined && areBelow(next, last) ? last : next;
    };
    return {
      current: () => find(heads.current()),
      subscribe: (listener) => {
        last = find(heads.current());
        return heads.subscribe((change) => {
          const next = find(change.heads);
          if (next !== undefined) {
            const changed = last === undefined ? { heads: next, from: [], to: [] } : changeBetween(last, next);
            last = next;
            listener(changed);
          }
        });
      },
    };
  }

  /** Returns that view; undefined if the block is not known yet. */
  find(heads: Heads, confirmations: number): View | undefined {
    const newest = this.#newest.get(confirmations);
    if (newest?.of === heads) {
      return newest.view;
    }
    const found = findHeads(heads, confirmations);
    const view = found && { heads: found };
    this.#newest.set(confirmations, { of: heads, view });
    return view;
  }
}
