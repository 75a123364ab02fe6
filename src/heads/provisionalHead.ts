import type { Clock } from "../core/clock.ts";
import type { RingBlock } from "../core/heads.ts";
import { readLinked } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";
import { classify } from "./canonicalChain.ts";
import { type ChainPath, findChainPath } from "./chainPath.ts";
import type { HeadLeader } from "./headLeader.ts";
import { sealedBlocksOf } from "./nodeChain.ts";

/** A provisional head can be withdrawn for this time. With other nodes, it stays provisional until one of them confirms it. */
const PROVISIONAL_MS = 60_000;
/** A provisional head is withdrawn if its node does not have it for this time. */
const PROVISIONAL_LOST_MS = 2_000;

export interface ProvisionalHeadOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly leader: HeadLeader;
  readonly onWithdrawn: (head: RingBlock) => void;
}

/** The served head while it is provisional: it does not link to the ring that was served before. */
export class ProvisionalHead {
  readonly #options: ProvisionalHeadOptions;
  /** `ring`: the chain that was served before. `undefined` if there was none. */
  #previous: { readonly ring: BlockRing | undefined; readonly sinceMs: number } | undefined;

  constructor(options: ProvisionalHeadOptions) {
    this.#options = options;
  }

  /** Whether the provisional head is the first that was served. */
  get isFirst(): boolean {
    return this.#previous !== undefined && this.#previous.ring === undefined;
  }

  /** Makes the served head provisional. `ring`: the chain that was served before, if there was one. */
  begin(ring: BlockRing | undefined): void {
    this.#previous = { ring, sinceMs: this.#options.clock.nowMs() };
  }

  end(): void {
    this.#previous = undefined;
  }

  /** Another node has this block of the served chain. If the block is above the chain before, the head is confirmed. */
  confirm({ number }: RingBlock): void {
    if (this.#previous && number > (this.#previous.ring?.latest.number ?? -1n)) {
      this.end();
    }
  }

  /** Returns the path to the chain before, if the provisional head's node does not have that head any more; else `unchanged`. */
  async restorePrevious(
    node: UpstreamNode,
    head: SealedBlock,
    { latest }: BlockRing,
  ): Promise<ChainPath | "unchanged"> {
    const { clock, leader, onWithdrawn } = this.#options;
    const previous = this.#previous;
    if (!previous) {
      return "unchanged";
    }
    if (clock.nowMs() - previous.sinceMs > PROVISIONAL_MS && leader.others().length === 0) {
      this.end();
      return "unchanged";
    }
    const isWrong =
      (node !== leader.node && (await leader.lacksAncestor(latest, head.block))) ||
      (await leader.isLost(latest, PROVISIONAL_LOST_MS));
    if (!isWrong) {
      return "unchanged";
    }
    const path = previous.ring ? await this.#pathOnto(node, head, previous.ring) : { blocks: [head], joined: false };
    if (!path || (previous.ring && !path.joined)) {
      return "unchanged";
    }
    onWithdrawn(latest);
    return path;
  }

  async #pathOnto(node: UpstreamNode, head: SealedBlock, onto: BlockRing): Promise<ChainPath | undefined> {
    const { signal } = this.#options;
    if (classify(onto, head) === "inRing") {
      return { blocks: sealedBlocksOf(onto, onto.latest.number), joined: true, onto };
    }
    const path = await findChainPath(onto, head, (range, hash) => readLinked(node, range, hash, signal));
    return path && { ...path, onto };
  }
}
