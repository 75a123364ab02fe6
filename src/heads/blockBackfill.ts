import type { RingBlock } from "../core/heads.ts";
import { smaller } from "../ethereum/bigintOrder.ts";
import { type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import { BackOff } from "../nodes/backOff.ts";
import { readLinked, type SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { untilWrong } from "./announcedBlocks.ts";
import { type BlockRing, RING_BLOCKS } from "./blockRing.ts";
import type { CanonicalChain } from "./canonicalChain.ts";

/** The context that background tasks of the head tracker share. */
export interface Background {
  readonly canonical: CanonicalChain;
  /** Resolves early when the first request after an idle time arrives, and when the chain is closed. */
  readonly pause: (forMs: number) => Promise<void>;
  readonly signal: AbortSignal;
  readonly isIdle: () => boolean;
  /** The preferred node that has the served head. */
  readonly source: () => UpstreamNode | undefined;
}

export interface BackfillOptions extends Background {
  /** The nodes that are read if the source does not have the blocks. */
  readonly others: () => readonly UpstreamNode[];
  readonly nowMs: () => number;
  /** Whether the newest blocks are being read: they come first. */
  readonly isBusy: () => boolean;
  /** Blocks of an earlier process or chain. They are added instead of being read, once the ring links to them. */
  readonly known: KnownAncestors;
}

/** Blocks by hash, each of which names its parent. */
export class KnownAncestors {
  readonly #blocks: ReadonlyMap<Hash, SealedBlock>;
  readonly #newest: bigint;

  /** The blocks are ascending. */
  constructor(blocks: readonly SealedBlock[]) {
    this.#blocks = new Map(blocks.map((sealed) => [sealed.block.hash, sealed]));
    this.#newest = blocks.at(-1)?.block.number ?? -1n;
  }

  /** Returns the known blocks below the ring, in descending order. */
  below(ring: BlockRing): readonly SealedBlock[] {
    const found: SealedBlock[] = [];
    let above = ring.at(ring.oldest);
    for (let next = this.#parentOf(above); next !== undefined; next = this.#parentOf(above)) {
      found.push(next);
      above = next.block;
    }
    return untilWrong(found, ring);
  }

  /** Returns the number of blocks between the ring and the newest known block. Undefined if none is below. */
  gapBelow(ring: BlockRing): number | undefined {
    return this.#newest >= 0n && this.#newest < ring.oldest - 1n ? Number(ring.oldest - 1n - this.#newest) : undefined;
  }

  #parentOf(above: RingBlock | undefined): SealedBlock | undefined {
    const found = above && this.#blocks.get(above.parentHash);
    return found !== undefined && found.block.number + 1n === above?.number ? found : undefined;
  }
}

/** The depth of the ring after a start: a reorganisation may go as deep, and the block time is measured over it. */
export const START_BLOCKS = 64;
const PERIOD_MS = 1_000;
/** A node that lacks the blocks, or returns errors, is asked at growing intervals, and then for one block. */
const BACKOFF = { failures: 1, openMs: PERIOD_MS, maxOpenMs: 60_000 };
const BATCH_BLOCKS = 50;
const IDLE_PERIOD_MS = 24_000;
const IDLE_BATCH_BLOCKS = 2;
/** Share of a node's request budget that the backfill may use. */
const BUDGET_SHARE = 0.25;

/**
 * Fills the block ring backwards, as far as anything has needed it since the start. While the chain is idle it reads slowly, to save
 * the nodes' requests.
 */
export class BlockBackfill {
  readonly #options: BackfillOptions;
  readonly #breakers = new Map<UpstreamNode, BackOff>();
  /** The greatest depth that was needed. A ring that was replaced is filled down to it again. */
  #depth = START_BLOCKS;
  /** The lowest block that requests wait for. */
  #awaited: bigint | undefined;
  #filledMs = Number.NEGATIVE_INFINITY;
  #wake = Promise.withResolvers<void>();
  #ended = Promise.withResolvers<void>();

  constructor(options: BackfillOptions) {
    this.#options = options;
    void this.#run();
  }

  /** Resolves when the ring has the block, or no node has one below the ring now. With a budget of requests, it waits once a second. */
  async reach(number: bigint): Promise<void> {
    const { ring } = this.#options.canonical;
    this.#depth = Math.max(this.#depth, ring === undefined ? 0 : Number(ring.latest.number - number) + 1);
    if (this.#isLimited && this.#options.nowMs() - this.#filledMs < PERIOD_MS) {
      return;
    }
    this.#awaited = this.#awaited === undefined ? number : smaller(this.#awaited, number);
    this.#wake.resolve();
    await this.#ended.promise;
  }

  async #run(): Promise<void> {
    const { pause, signal, isIdle } = this.#options;
    while (!signal.aborted) {
      const isLonger = await this.#fill();
      this.#filledMs = this.#options.nowMs();
      if (isLonger && this.#isAwaited) {
        continue;
      }
      this.#awaited = undefined;
      this.#ended.resolve();
      this.#ended = Promise.withResolvers();
      await Promise.race([pause(isIdle() ? IDLE_PERIOD_MS : PERIOD_MS), this.#wake.promise]);
      this.#wake = Promise.withResolvers();
    }
  }

  /** Whether a block is awaited that the ring lacks. Where nodes have a budget of requests, the reads stay within their share. */
  get #isAwaited(): boolean {
    const { ring } = this.#options.canonical;
    return this.#awaited !== undefined && ring !== undefined && this.#awaited < ring.oldest && !this.#isLimited;
  }

  get #isLimited(): boolean {
    return this.#options.source()?.config.requestsPerSecond !== undefined;
  }

  /** The number of blocks that the ring lacks: those that were needed, and those that reads wanted. */
  #missing({ latest, length }: BlockRing): number {
    const { lowestWanted } = this.#options.canonical;
    const wanted = lowestWanted === undefined ? 0 : Number(latest.number - lowestWanted) + 1;
    return Math.min(RING_BLOCKS, Math.max(this.#depth, wanted)) - length;
  }

  /** Reads some blocks below the ring. Returns whether the ring changed. */
  async #fill(): Promise<boolean> {
    const { canonical, source, others, isBusy } = this.#options;
    const first = source();
    const { ring } = canonical;
    const missing = ring === undefined ? 0 : this.#missing(ring);
    if (first === undefined || ring === undefined || ring.oldest === 0n || missing <= 0 || isBusy()) {
      return false;
    }
    if (this.#fillKnown(ring)) {
      return true;
    }
    const nodes = first.available ? [first, ...others()] : [...others(), first];
    for (const node of nodes.filter((each) => this.#breakerOf(each).available)) {
      if ((await this.#fillFrom(node, ring, missing)) || canonical.ring !== ring) {
        return true;
      }
    }
    return false;
  }

  /** Returns whether the node has the blocks below the ring. */
  async #fillFrom(node: UpstreamNode, ring: BlockRing, missing: number): Promise<boolean> {
    const { canonical, signal } = this.#options;
    const breaker = this.#breakerOf(node);
    const wanted = breaker.needsTrial ? 1 : Math.min(this.#batchOf(node, ring), missing);
    const to = ring.oldest - 1n;
    const from = to - BigInt(wanted) + 1n;
    const top = ring.at(ring.oldest)?.parentHash ?? ZERO_HASH;
    breaker.begin();
    const linked = await readLinked(node, { from: from > 0n ? from : 0n, to }, top, signal).catch(() => []);
    const blocks = untilWrong(linked, ring);
    const isFilled = blocks.length > 0 && canonical.fill(blocks.toReversed());
    if (isFilled && canonical.ring !== undefined) {
      this.#fillKnown(canonical.ring);
    }
    if (isFilled) {
      breaker.succeeded();
    } else {
      breaker.failed();
    }
    return isFilled;
  }

  #fillKnown(ring: BlockRing): boolean {
    const { canonical, known } = this.#options;
    const blocks = known.below(ring);
    return blocks.length > 0 && canonical.fill(blocks.toReversed());
  }

  #breakerOf(node: UpstreamNode): BackOff {
    const breaker = this.#breakers.get(node) ?? new BackOff({ ...BACKOFF, nowMs: this.#options.nowMs });
    this.#breakers.set(node, breaker);
    return breaker;
  }

  /** The number of blocks that are read at once from a node that needs no probe. */
  #batchOf(node: UpstreamNode, ring: BlockRing): number {
    const { known, isIdle } = this.#options;
    const perSecond = node.config.requestsPerSecond ?? Number.POSITIVE_INFINITY;
    const affordable = Math.max(1, Math.floor(perSecond * BUDGET_SHARE));
    const gap = known.gapBelow(ring) ?? BATCH_BLOCKS;
    return Math.min(isIdle() ? IDLE_BATCH_BLOCKS : BATCH_BLOCKS, affordable, gap);
  }
}
