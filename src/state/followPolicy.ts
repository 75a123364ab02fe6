import { RepeatedReads } from "./repeatedReads.ts";
import { SlidingSum } from "./slidingSum.ts";
import type { WriteSetSource } from "./writeSet.ts";

/** The period whose reads decide. */
const PERIOD_MS = 60_000;
/** A paid source is not followed this long after the last read. */
const IDLE_MS = 30_000;
/** Following must save this many times its cost. */
const MIN_GAIN = 2;

export interface StateRead {
  /** The canonical text of the parameters without the block. */
  readonly canonicalParams: string;
  /** The units that a node bills for the read. */
  readonly units: number;
  /** The number of the block that the read names. */
  readonly block: bigint;
}

/** The state after a pause, for the choice of how to continue. */
export interface Pause {
  /** Blocks whose write sets were not read. */
  readonly missedBlocks: number;
  readonly unitsPerBlock: number;
  /** Values that reads of the last minute used. */
  readonly usedValues: number;
  /** The units that learning one value costs. */
  readonly unitsPerValue: number;
}

/**
 * Whether reading the missed write sets is cheaper than learning the values again.
 * No more than 256 blocks are read, because older values cannot be served.
 */
export const isCatchUpCheaper = ({ missedBlocks, unitsPerBlock, usedValues, unitsPerValue }: Pause): boolean =>
  missedBlocks <= MAX_MISSED_BLOCKS && missedBlocks * unitsPerBlock < usedValues * unitsPerValue;

/** The state cache serves the newest 256 blocks. */
const MAX_MISSED_BLOCKS = 256;

/**
 * Decides whether following a source of write sets pays for itself.
 * Following saves the reads that repeat one of an earlier block, and costs one write set a block.
 * A memory hit saves nothing, so only the first equal read of each block is recorded.
 */
export class FollowPolicy {
  readonly #nowMs: () => number;
  readonly #reads = new RepeatedReads(PERIOD_MS);
  readonly #repeatedUnits = new SlidingSum(PERIOD_MS);
  readonly #blocks = new SlidingSum(PERIOD_MS);
  #lastReadMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Records a read that the state cache can answer once it knows the values. */
  recordRead({ canonicalParams, units, block }: StateRead): void {
    const nowMs = this.#nowMs();
    this.#lastReadMs = nowMs;
    if (this.#reads.record(canonicalParams, block, nowMs)) {
      this.#repeatedUnits.add(units, nowMs);
    }
  }

  /** Records new canonical blocks. */
  recordBlocks(count: number): void {
    this.#blocks.add(count, this.#nowMs());
  }

  /** Whether the write set of the next block is worth its units. A free source always is. */
  pays({ unitsPerBlock }: Pick<WriteSetSource, "unitsPerBlock">): boolean {
    if (unitsPerBlock === 0) {
      return true;
    }
    const nowMs = this.#nowMs();
    if (nowMs - this.#lastReadMs >= IDLE_MS) {
      return false;
    }
    const blocks = Math.max(1, this.#blocks.total(nowMs));
    return this.#repeatedUnits.total(nowMs) >= MIN_GAIN * unitsPerBlock * blocks;
  }
}
