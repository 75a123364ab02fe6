import type { Clock } from "../core/clock.ts";
import type { RingBlock } from "../core/heads.ts";
import { readLinked } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";
import { classify } from "./canonicalChain.ts";
import { type ChainPath, findChainPath } from "./chainPath.ts";
import type { HeadLeader } from "./headLeader.ts";

/** A head that did not link may be withdrawn this long; longer if another node contradicts it. */
const TRIAL_MS = 60_000;
/** A head on trial is withdrawn if its node lacks it for this time. */
const LOST_ON_TRIAL_MS = 2_000;

export interface HeadTrialOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly leader: HeadLeader;
  readonly onWithdrawn: (head: RingBlock) => void;
}

/** Returns a ring's block with its header; nothing if the ring does not have it. */
export const sealedBlocksOf = (ring: BlockRing, number: bigint): SealedBlock[] => {
  const block = ring.at(number);
  return block === undefined ? [] : [{ block, header: ring.header(number) }];
};

/** A head that was served although it does not link to the ring before it. It is withdrawn if it proves to be invented. */
export class HeadTrial {
  readonly #options: HeadTrialOptions;
  /** `ring`: the chain that was served before. `undefined` if there was none. */
  #trial: { readonly ring: BlockRing | undefined; readonly sinceMs: number } | undefined;

  constructor(options: HeadTrialOptions) {
    this.#options = options;
  }

  /** Whether the head on trial is the first that was served. */
  get isFirst(): boolean {
    return this.#trial !== undefined && this.#trial.ring === undefined;
  }

  /** Starts the trial of a head that does not link to `ring`. */
  begin(ring: BlockRing | undefined): void {
    this.#trial = { ring, sinceMs: this.#options.clock.nowMs() };
  }

  end(): void {
    this.#trial = undefined;
  }

  /** Another node has this block of the served chain. It ends the trial if the block is above the chain before. */
  confirm({ number }: RingBlock): void {
    if (this.#trial && number > (this.#trial.ring?.latest.number ?? -1n)) {
      this.end();
    }
  }

  /** Returns the path back to the chain before the trial if the head on trial proves to be invented; else `unchanged`. */
  async fallBack(node: UpstreamNode, head: SealedBlock, { latest }: BlockRing): Promise<ChainPath | "unchanged"> {
    const { clock, leader, onWithdrawn } = this.#options;
    const trial = this.#trial;
    if (!trial) {
      return "unchanged";
    }
    if (clock.nowMs() - trial.sinceMs > TRIAL_MS && leader.others().length === 0) {
      this.end();
      return "unchanged";
    }
    const isUntrue =
      (node !== leader.node && (await leader.isInvented(latest, head.block))) ||
      (await leader.isLost(latest, LOST_ON_TRIAL_MS));
    if (!isUntrue) {
      return "unchanged";
    }
    const path = trial.ring ? await this.#pathOnto(node, head, trial.ring) : { blocks: [head], joined: false };
    if (!path || (trial.ring && !path.joined)) {
      return "unchanged";
    }
    onWithdrawn(latest);
    return path;
  }

  async #pathOnto(node: UpstreamNode, head: SealedBlock, onto: BlockRing): Promise<ChainPath | undefined> {
    const { signal } = this.#options;
    if (classify(onto, head) === "known") {
      return { blocks: sealedBlocksOf(onto, onto.latest.number), joined: true, onto };
    }
    const path = await findChainPath(onto, head, (range, hash) => readLinked(node, range, hash, signal));
    return path && { ...path, onto };
  }
}
