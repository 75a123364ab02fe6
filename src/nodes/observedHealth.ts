import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";

interface PruneHorizon {
  /** Records that the node does not have the data of this block. */
  recordPruned(number: bigint, head: bigint | undefined): void;
  /** Returns the lowest block whose data the node may have. */
  oldest(head: bigint | undefined): bigint;
}

/** The record expires, because a node may be replaced by one with more data. */
const FORGET_AFTER_MS = 600_000;

/** Learns a pruned node's prune horizon as a distance in blocks: the horizon moves with the node's head. */
const createPruneHorizon = (nowMs: () => number = () => performance.now()): PruneHorizon => {
  let blocks: bigint | undefined;
  let learnedAtMs = 0;
  return {
    recordPruned: (number, head) => {
      const distance = (head ?? number) - number;
      if (distance > 0n && (blocks === undefined || distance < blocks)) {
        blocks = distance;
        learnedAtMs = nowMs();
      }
    },
    oldest: (head) => {
      if (blocks !== undefined && nowMs() - learnedAtMs > FORGET_AFTER_MS) {
        blocks = undefined;
      }
      return blocks === undefined || head === undefined || head < blocks ? 0n : head - blocks + 1n;
    },
  };
};

/** The longest time that one machine of a node may be behind another. */
const ANNOUNCED_MS = 10_000;
const AVERAGE_WEIGHT = 0.1;
/** With blocks of 200 ms, these are those of the time that another origin may need for the same head. */
const RECENT_BLOCKS = 16;

/** A block that a node announced. */
export interface AnnouncedBlock extends BlockId {
  readonly parentHash?: Hash;
}

/** The health of one node, for the selection of nodes: heads, prune horizon, latency, share of faults, load. */
export class ObservedHealth {
  readonly #horizon = createPruneHorizon();
  #head: BlockId | undefined;
  /** The newest announced blocks and their parents, in ascending order. */
  #recent: readonly BlockId[] = [];
  #highestHead: { readonly number: bigint; readonly atMs: number } | undefined;
  #latencyMs = 0;
  #errorShare = 0;
  #inFlight = 0;

  get head(): bigint | undefined {
    return this.#head?.number;
  }

  /** Hash of the block at `head`. */
  get headHash(): Hash | undefined {
    return this.#head?.hash;
  }

  /** The highest head that was reported within ANNOUNCED_MS: one of the node's machines has that block, even if `head` is lower. */
  get announced(): bigint | undefined {
    const highest = this.#highestHead;
    return highest && performance.now() - highest.atMs <= ANNOUNCED_MS ? highest.number : this.head;
  }

  /** The lowest block whose data the node may have. */
  get oldest(): bigint {
    return this.#horizon.oldest(this.head);
  }

  /** Moving average of the duration of good responses. */
  get latencyMs(): number {
    return this.#latencyMs;
  }

  /** Moving average of the share of faults, 0 to 1. */
  get errorShare(): number {
    return this.#errorShare;
  }

  /** Calls in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Returns the hash of a recent block of the node's chain, if it announced the block or its child. */
  hashAt(number: bigint): Hash | undefined {
    return this.#recent.find((block) => block.number === number)?.hash;
  }

  recordHead({ number, hash, parentHash }: AnnouncedBlock): void {
    const { announced } = this;
    if (announced === undefined || number >= announced) {
      this.#highestHead = { number, atMs: performance.now() };
    }
    this.#head = { number, hash };
    const parent = parentHash === undefined ? [] : [{ number: number - 1n, hash: parentHash }];
    const lowest = parent[0]?.number ?? number;
    const below = this.#recent.filter((block) => block.number < lowest);
    this.#recent = [...below, ...parent, this.#head].slice(-RECENT_BLOCKS);
  }

  recordPruned(number: bigint): void {
    this.#horizon.recordPruned(number, this.head);
  }

  recordStart(): void {
    this.#inFlight += 1;
  }

  recordEnd(): void {
    this.#inFlight -= 1;
  }

  /** Records that another node responded first, this long after the request to this one. No effect on a node that is slower as a rule. */
  recordLatencyAbove(elapsedMs: number): void {
    if (elapsedMs > this.#latencyMs) {
      this.#recordLatency(elapsedMs);
    }
  }

  /** Updates the averages. Durations of faults do not count: a timeout says nothing about the usual latency. */
  recordOutcome(durationMs: number, isFault: boolean): void {
    this.#errorShare += AVERAGE_WEIGHT * ((isFault ? 1 : 0) - this.#errorShare);
    if (!isFault && durationMs > 0) {
      this.#recordLatency(durationMs);
    }
  }

  #recordLatency(durationMs: number): void {
    this.#latencyMs += (this.#latencyMs === 0 ? 1 : AVERAGE_WEIGHT) * (durationMs - this.#latencyMs);
  }
}
