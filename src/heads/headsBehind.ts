import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { View } from "../core/view.ts";
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

/** The views of clients whose keys want blocks with confirmations. The newest one of each number of confirmations is shared by requests. */
export class HeadsBehind {
  readonly #newest = new Map<number, { readonly of: Heads; readonly view: View | undefined }>();

  /** Returns the view as a client sees it: behind by its confirmations. */
  seenFrom(view: View, behind: Context["behind"]): View {
    return behind === undefined ? view : this.view(view.heads, behind.confirmations);
  }

  /** Returns the view of the heads that are `confirmations` blocks behind. Throws RpcError (503) if that block is not known yet. */
  view(heads: Heads, confirmations: number): View {
    const view = this.find(heads, confirmations);
    if (view === undefined) {
      throw unavailable(`the newest ${confirmations} blocks of the chain are not known yet`);
    }
    return view;
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
