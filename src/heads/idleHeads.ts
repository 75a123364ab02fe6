import type { RingBlock } from "../core/heads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { MAX_GAP_BLOCKS } from "./chainPath.ts";
import { type Agree, requiredOrigins } from "./decideHead.ts";
import type { HeadAgreement } from "./headAgreement.ts";

/** Returns the higher one of two blocks. */
const later = (one: RingBlock | undefined, other: RingBlock | undefined): RingBlock | undefined =>
  one === undefined || (other !== undefined && other.number > one.number) ? other : one;

export interface IdleHeadsOptions {
  readonly agree: Agree;
  readonly agreement: Pick<HeadAgreement, "pause" | "resume">;
  /** Whether nobody uses the chain, and its blocks are skipped. */
  readonly isIdle: () => boolean;
  /** The number of the served head. */
  readonly served: () => bigint | undefined;
}

/**
 * The heads of a fast chain that nobody uses. They are reported, but the blocks between them are not read: that would be 300 calls a
 * minute with 200 ms blocks. The first client waits until they are.
 */
export class IdleHeads {
  readonly #options: IdleHeadsOptions;
  /** The newest head of each node since heads are not linked. Undefined if they are. */
  #heads: Map<UpstreamNode, RingBlock> | undefined;
  #newest: RingBlock | undefined;

  constructor(options: IdleHeadsOptions) {
    this.#options = options;
  }

  /** The newest block that enough origins have reported at or above since heads are not linked. */
  get newest(): RingBlock | undefined {
    return this.#newest;
  }

  /** Returns whether the node's head is only recorded. If it is not, the chain is extended to it. */
  records(node: UpstreamNode, head: RingBlock, nodes: readonly UpstreamNode[]): boolean {
    const { agreement, isIdle, served } = this.#options;
    const number = served();
    // Above the gap, a new ring begins. So `finalized` goes on.
    const isNear = number !== undefined && head.number - number <= MAX_GAP_BLOCKS;
    if (isNear && isIdle()) {
      if (this.#heads === undefined) {
        agreement.pause();
      }
      this.#heads ??= new Map();
      this.#heads.set(node, head);
      this.#newest = later(this.#newest, this.#reported(this.#heads, nodes));
      return true;
    }
    if (this.#heads !== undefined) {
      this.#heads = undefined;
      this.#newest = undefined;
      agreement.resume();
    }
    return false;
  }

  /** Returns the highest head that enough of the origins that can be reached report at or above. */
  #reported(heads: ReadonlyMap<UpstreamNode, RingBlock>, nodes: readonly UpstreamNode[]): RingBlock | undefined {
    const origins = new Map<string, RingBlock | undefined>();
    for (const node of nodes.filter(({ available }) => available)) {
      const head = later(origins.get(node.origin), heads.get(node));
      origins.set(node.origin, head);
    }
    const descending = [...origins.values()].flatMap((head) => head ?? []).sort((a, b) => Number(b.number - a.number));
    // Of two origins, the one behind would lose its vote.
    const voters = origins.size === 2 ? 1 : origins.size;
    return descending[requiredOrigins(this.#options.agree, voters) - 1];
  }
}
