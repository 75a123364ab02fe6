import type { RingBlock } from "../core/heads.ts";
import { MAX_GAP_BLOCKS } from "./chainPath.ts";
import type { HeadAgreement } from "./headAgreement.ts";

/** Below this block time, linking each block costs more than 50 calls a minute. */
const FAST_BLOCK_MS = 1_500;

export interface IdleHeadsOptions {
  readonly agreement: Pick<HeadAgreement, "pause" | "resume">;
  /** Whether nobody uses the chain, and its nodes are polled. */
  readonly isIdle: () => boolean;
  readonly blockTimeMs: () => number;
  /** The number of the served head. */
  readonly served: () => bigint | undefined;
}

/**
 * The heads of a fast chain that nobody uses. They are reported, but the blocks between them are not read: that would be 300 calls a
 * minute with 200 ms blocks. The first client waits until they are.
 */
export class IdleHeads {
  readonly #options: IdleHeadsOptions;
  #newest: RingBlock | undefined;

  constructor(options: IdleHeadsOptions) {
    this.#options = options;
  }

  /** The newest block that a node has reported since heads are not linked. Undefined if they are. */
  get newest(): RingBlock | undefined {
    return this.#newest;
  }

  /** Returns whether the head is only recorded. If it is not, the chain is extended to it. */
  records(head: RingBlock): boolean {
    const { agreement, isIdle, blockTimeMs, served } = this.#options;
    const number = served();
    // Above the gap, a new ring is read with two blocks. So `finalized` goes on.
    const isNear = number !== undefined && head.number - number <= MAX_GAP_BLOCKS;
    if (isNear && isIdle() && blockTimeMs() < FAST_BLOCK_MS) {
      if (this.#newest === undefined) {
        agreement.pause();
      }
      this.#newest = this.#newest !== undefined && this.#newest.number > head.number ? this.#newest : head;
      return true;
    }
    if (this.#newest !== undefined) {
      this.#newest = undefined;
      agreement.resume();
    }
    return false;
  }
}
