import type { UnitsOf } from "../access/providerUnits.ts";
import { SlidingSum } from "../limits/slidingSum.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { StateKey } from "./stateKey.ts";
import type { Repetition, UsedValues } from "./store/usedValues.ts";

/** The period whose reads decide. */
const PERIOD_MS = 60_000;
/** A paid source is not followed this long after the last read. */
const IDLE_MS = 30_000;
/** Following must save this many times its cost. */
const MIN_GAIN = 2;

type UnitMetrics = Pick<Metrics, "stateUnitsSpent" | "stateUnitsSaved">;

/** The reason why units are spent to follow state. */
export type UnitPurpose = Parameters<UnitMetrics["stateUnitsSpent"]["inc"]>[0]["purpose"];

/** What is spent within `state.unitsPerMinute`. Write sets have a rule of their own: they must save twice their cost. */
const LIMITED: ReadonlySet<UnitPurpose> = new Set(["learning", "proofs", "check", "sample"]);

/** One read of a state value at a readable block. */
export interface CountedRead {
  readonly method: string;
  readonly key: StateKey;
  /** Number of the block whose state is read. */
  readonly block: bigint;
  /** Whether the state cache had the value, at once or after a wait. */
  readonly isHit: boolean;
  /** The client that reads. */
  readonly client?: string;
  /** The units of the read. Default: those of its method. */
  readonly units?: number | undefined;
}

/** One call at a readable block. */
export interface CountedCall extends Omit<CountedRead, "key"> {
  readonly repetition: Repetition;
}

/** Sums of the last minute. */
export interface RecentReads {
  readonly repeatedUnits: number;
  readonly blocks: number;
}

export interface StateCostOptions {
  readonly chain: string;
  readonly metrics: UnitMetrics;
  readonly unitsOf: UnitsOf;
  /** `state.unitsPerMinute`: on all nodes of the chain together. */
  readonly unitsPerMinute: number;
  readonly used: Pick<UsedValues, "record" | "size">;
  readonly nowMs?: () => number;
}

/**
 * Counts the provider units that known state costs and saves on one chain, and decides by them what is followed and learned. A paid
 * source is followed while that saves twice its cost. It saves the reads that repeat one of an earlier block, and costs one write set
 * a block. Equal reads of one block count once, because the response cache answers the others. One bucket limits learning and checks.
 */
export class StateCost {
  readonly unitsOf: UnitsOf;
  readonly #options: StateCostOptions;
  readonly #nowMs: () => number;
  readonly #repeatedUnits = new SlidingSum(PERIOD_MS);
  readonly #blocks = new SlidingSum(PERIOD_MS);
  readonly #bucket: TokenBucket;
  #filledMs: number;
  #newestBlock = 0n;
  #lastReadMs = Number.NEGATIVE_INFINITY;

  constructor(options: StateCostOptions) {
    const { unitsOf, unitsPerMinute, nowMs = () => performance.now() } = options;
    this.unitsOf = unitsOf;
    this.#options = options;
    this.#nowMs = nowMs;
    this.#bucket = new TokenBucket(unitsPerMinute, unitsPerMinute);
    this.#filledMs = nowMs();
  }

  /** Counts a read that the state cache can answer once it has the value. It is on the path of a cache hit. */
  onRead({ method, key, block, isHit, client, units }: CountedRead): void {
    const repetition = this.#options.used.record(key, block, client);
    this.onCall({ method, block, isHit, repetition, units });
  }

  /** Counts a call whose result can hold for several blocks. */
  onCall({ method, block, repetition, isHit, units = this.unitsOf(method) }: CountedCall): void {
    const nowMs = this.#nowMs();
    this.#countBlocks(block, nowMs);
    this.#lastReadMs = nowMs;
    if (repetition === "sameBlock") {
      return;
    }
    if (repetition === "repeated") {
      this.#repeatedUnits.add(units, nowMs);
    }
    if (isHit) {
      const { chain, metrics } = this.#options;
      metrics.stateUnitsSaved.inc({ chain }, units);
    }
  }

  /** Counts units that forebay spends. Checks never wait for the bucket, but leave less of it to learning. */
  spend(purpose: UnitPurpose, units: number): void {
    const { chain, metrics } = this.#options;
    metrics.stateUnitsSpent.inc({ chain, purpose }, units);
    if (LIMITED.has(purpose)) {
      this.#fill();
      this.#bucket.spend(units);
    }
  }

  /** Units that learning may cost now. */
  get forLearning(): number {
    this.#fill();
    return Math.max(0, this.#bucket.tokens);
  }

  /** Whether the write set of the next block is worth its units. Called once for each paid source and head. */
  shouldFollow(unitsPerBlock: number): boolean {
    if (unitsPerBlock === 0) {
      return true;
    }
    const nowMs = this.#nowMs();
    const blocks = Math.max(1, this.#blocks.total(nowMs));
    const isIdle = nowMs - this.#lastReadMs >= IDLE_MS;
    return !isIdle && this.#repeatedUnits.total(nowMs) >= MIN_GAIN * unitsPerBlock * blocks;
  }

  /**
   * Whether the write sets of a pause cost less than reading the values of the last minute again, one by one. If not, known
   * values are dropped.
   */
  shouldCatchUp(missedBlocks: number, unitsPerBlock: number): boolean {
    return missedBlocks * unitsPerBlock < this.#options.used.size * this.unitsOf("eth_getStorageAt");
  }

  /** Returns the sums of the last minute. */
  get recent(): RecentReads {
    const nowMs = this.#nowMs();
    return { repeatedUnits: this.#repeatedUnits.total(nowMs), blocks: this.#blocks.total(nowMs) };
  }

  /** Goes on with the reads before a restart, as if they were of now. `block` is the newest one that is known. */
  resume({ repeatedUnits, blocks }: RecentReads, block: bigint): void {
    const nowMs = this.#nowMs();
    this.#repeatedUnits.add(repeatedUnits, nowMs);
    this.#blocks.add(blocks, nowMs);
    this.#newestBlock = block > this.#newestBlock ? block : this.#newestBlock;
    this.#lastReadMs = nowMs;
  }

  #fill(): void {
    const nowMs = this.#nowMs();
    this.#bucket.earn((this.#options.unitsPerMinute * (nowMs - this.#filledMs)) / PERIOD_MS);
    this.#filledMs = nowMs;
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

/** Returns what may be learned with these units: all that is wanted, or the first half of it, and so on. */
export const affordable = <T>(
  wanted: readonly T[],
  unitsFor: (wanted: readonly T[]) => number,
  units: number,
): readonly T[] => {
  let chosen = wanted;
  while (chosen.length > 0 && unitsFor(chosen) > units) {
    chosen = chosen.slice(0, chosen.length >> 1);
  }
  return chosen;
};
