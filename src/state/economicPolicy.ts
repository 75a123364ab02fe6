import type { CountedRead, FollowPolicy, ProbationLeft } from "./followPolicy.ts";
import type { UnitsOf } from "./providerUnits.ts";
import { SlidingSum } from "./slidingSum.ts";
import type { UnitLedger } from "./unitLedger.ts";
import type { Repetition, UsedKeys } from "./usedKeys.ts";

/** The period whose reads decide. */
export const PERIOD_MS = 60_000;
/** A paid source is not followed this long after the last read. */
const IDLE_MS = 30_000;
/** Following must save this many times its cost. */
const MIN_GAIN = 2;
/** A probation must pay for itself within this time. */
const HORIZON_MS = 600_000;
/** The state cache serves this number of blocks. Write sets of older blocks are of no use. */
const SERVED_BLOCKS = 256;

const NO_PROBATION: ProbationLeft = { blocksLeft: 0, valuesLeft: 0 };

export interface EconomicPolicyOptions {
  readonly unitsOf: UnitsOf;
  readonly ledger: Pick<UnitLedger, "save">;
  /** Of PERIOD_MS. */
  readonly usedKeys: Pick<UsedKeys, "record" | "size">;
  readonly nowMs: () => number;
}

/** One call at a sealed block within the newest 256. */
export interface CountedCall extends Omit<CountedRead, "key"> {
  readonly repetition: Repetition;
}

/**
 * Follows a paid source while that saves twice its cost.
 * It saves the reads that repeat one of an earlier block, and costs one write set a block.
 * Equal reads of one block count once, because the response cache answers the others.
 */
export class EconomicPolicy implements FollowPolicy {
  readonly #options: EconomicPolicyOptions;
  readonly #repeatedUnits = new SlidingSum(PERIOD_MS);
  /** Repeated reads of single values. Their responses are compared during probation. */
  readonly #repeatedReads = new SlidingSum(PERIOD_MS);
  readonly #blocks = new SlidingSum(PERIOD_MS);
  #newestBlock = 0n;
  #lastReadMs = Number.NEGATIVE_INFINITY;

  constructor(options: EconomicPolicyOptions) {
    this.#options = options;
  }

  /** Counts a read that the state cache can answer once it has the value. */
  onRead({ method, key, block, isHit, client, units }: CountedRead): void {
    const repetition = this.#options.usedKeys.record(key, block, client);
    if (repetition === "repeated") {
      this.#repeatedReads.add(1, this.#options.nowMs());
    }
    this.#count({ method, block, isHit, repetition, units });
  }

  /** Counts a call whose answer can hold for several blocks. */
  onCall(call: CountedCall): void {
    this.#count(call);
  }

  #count({ method, block, repetition, isHit, units = this.#options.unitsOf(method) }: CountedCall): void {
    const nowMs = this.#options.nowMs();
    this.#countBlocks(block, nowMs);
    this.#lastReadMs = nowMs;
    if (repetition === "sameBlock") {
      return;
    }
    if (repetition === "repeated") {
      this.#repeatedUnits.add(units, nowMs);
    }
    if (isHit) {
      this.#options.ledger.save(units);
    }
  }

  /** Whether the write set of the next block is worth its units. */
  shouldFollow(unitsPerBlock: number, probation?: ProbationLeft): boolean {
    if (unitsPerBlock === 0) {
      return true;
    }
    const nowMs = this.#options.nowMs();
    if (nowMs - this.#lastReadMs >= IDLE_MS) {
      return false;
    }
    const blocks = Math.max(1, this.#blocks.total(nowMs));
    const saved = this.#repeatedUnits.total(nowMs) * this.#savingShare(blocks, nowMs, probation);
    return saved >= MIN_GAIN * unitsPerBlock * blocks;
  }

  /** Returns the share of the horizon in which the source saves: the time after its probation. */
  #savingShare(blocks: number, nowMs: number, { blocksLeft, valuesLeft }: ProbationLeft = NO_PROBATION): number {
    const values = Math.max(1, this.#repeatedReads.total(nowMs));
    const periods = Math.max(blocksLeft / blocks, valuesLeft / values);
    return Math.max(0, 1 - (periods * PERIOD_MS) / HORIZON_MS);
  }

  /** Whether the write sets of a pause cost less than reading the values of the last minute again, one by one. */
  shouldCatchUp(missedBlocks: number, unitsPerBlock: number): boolean {
    const { usedKeys, unitsOf } = this.#options;
    const unitsOfValues = usedKeys.size * unitsOf("eth_getStorageAt");
    return missedBlocks <= SERVED_BLOCKS && missedBlocks * unitsPerBlock < unitsOfValues;
  }

  /** Block numbers of reads show the rate of blocks. A step after a pause does not. */
  #countBlocks(block: bigint, nowMs: number): void {
    if (block <= this.#newestBlock) {
      return;
    }
    if (nowMs - this.#lastReadMs < IDLE_MS) {
      this.#blocks.add(Number(block - this.#newestBlock), nowMs);
    }
    this.#newestBlock = block;
  }
}
