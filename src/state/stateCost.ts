import type { UnitsOf } from "../access/providerUnits.ts";
import { SlidingSum } from "../limits/slidingSum.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { GiverEvidence } from "./giverEvidence.ts";
import type { StateKey } from "./stateKey.ts";
import type { Repetition, UsedValues } from "./store/usedValues.ts";
import type { WriteSetSource } from "./writeSet.ts";

/** The period whose reads decide. */
const PERIOD_MS = 60_000;
/** A paid source is not followed this long after the last read. */
const IDLE_MS = 30_000;
/** Following must save this many times its cost. */
const MIN_GAIN = 2;
/** A probation must pay for itself within this time. */
const HORIZON_MS = 600_000;
/** The share of local results that are compared with a node, limited to one a second. */
const SAMPLE_SHARE = 0.01;
const MIN_SAMPLE_INTERVAL_MS = 1_000;
/** Results that are proven are compared this many times as rarely: only forebay itself can be wrong. */
const PROVEN_DIVISOR = 10;
/** Restored values are compared this many times as often, for this time or until so many comparisons agreed. */
export const RESTORED_FACTOR = 10;
const RESTORED_MS = 180_000;
/** Five audits of the most values: the most used ones five times, and as many others. */
const RESTORED_COMPARISONS = 10_000;

/** Enough to learn the first values of a quiet chain. */
const FIRST_UNITS = 500;
/** Audits may cost this share of what is saved. */
const AUDIT_SHARE = 0.02;
/** Unused units for audits add up to this limit, so that a busy hour does not pay for audits of a quiet one. */
export const MAX_AUDIT_UNITS = 10_000;

/** `chains[].state.learning`. */
export interface LearningLimits {
  /** The share of the units of the requests that nodes answer. */
  readonly share: number;
  /** On all nodes of the chain together, so that no node gets more. */
  readonly unitsPerMinute: number;
}

type UnitMetrics = Pick<Metrics, "stateUnitsSpent" | "stateUnitsSaved">;

/** The reason why units are spent to follow state. */
export type UnitPurpose = Parameters<UnitMetrics["stateUnitsSpent"]["inc"]>[0]["purpose"];

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

interface RepeatedReads {
  readonly repeatedUnits: number;
  readonly repeatedReads: number;
}

/** Sums of the last minute. */
export interface RecentReads extends RepeatedReads {
  readonly blocks: number;
}

const NO_READS: RepeatedReads = { repeatedUnits: 0, repeatedReads: 0 };

/** The agreements that a source still needs. */
type EvidenceLeft = Pick<GiverEvidence, "blocksLeft" | "valuesLeft">;

const ENOUGH: EvidenceLeft = { blocksLeft: 0, valuesLeft: 0 };

export interface StateCostOptions {
  readonly chain: string;
  readonly metrics: UnitMetrics;
  readonly unitsOf: UnitsOf;
  readonly learning: LearningLimits;
  readonly used: Pick<UsedValues, "record" | "size">;
  readonly nowMs?: () => number;
  readonly random?: () => number;
}

/**
 * Counts the provider units that known state costs and saves on one chain, and decides by them what is followed, learned and
 * compared. A paid source is followed while that saves twice its cost. It saves the reads that repeat one of an earlier block, and
 * costs one write set a block. Equal reads of one block count once, because the response cache answers the others.
 */
export class StateCost {
  readonly unitsOf: UnitsOf;
  readonly budget: BackgroundBudget;
  readonly #used: StateCostOptions["used"];
  readonly #chain: string;
  readonly #metrics: UnitMetrics;
  readonly #nowMs: () => number;
  readonly #random: () => number;
  readonly #repeatedUnits = new SlidingSum(PERIOD_MS);
  /** Repeated reads of single values. Their responses are compared during probation. */
  readonly #repeatedReads = new SlidingSum(PERIOD_MS);
  readonly #blocks = new SlidingSum(PERIOD_MS);
  /** Reads of other replicas, which share write sets with this one. */
  #others = NO_READS;
  #newestBlock = 0n;
  #restoredUntilMs = Number.NEGATIVE_INFINITY;
  #restoredLeft = 0;
  #lastReadMs = Number.NEGATIVE_INFINITY;
  #lastSampleMs = Number.NEGATIVE_INFINITY;
  /** Of proven results. */
  #lastProvenSampleMs = Number.NEGATIVE_INFINITY;

  constructor(options: StateCostOptions) {
    const { chain, metrics, unitsOf, learning, used, nowMs = () => performance.now(), random = Math.random } = options;
    this.unitsOf = unitsOf;
    this.#chain = chain;
    this.#metrics = metrics;
    this.#nowMs = nowMs;
    this.#random = random;
    this.#used = used;
    this.budget = new BackgroundBudget(learning, nowMs);
  }

  /** Counts a read that the state cache can answer once it has the value. It is on the path of a cache hit. */
  onRead({ method, key, block, isHit, client, units }: CountedRead): void {
    const repetition = this.#used.record(key, block, client);
    if (repetition === "repeated") {
      this.#repeatedReads.add(1, this.#nowMs());
    }
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
      this.#metrics.stateUnitsSaved.inc({ chain: this.#chain }, units);
      this.budget.earnBySaving(units);
    }
  }

  /** Counts a request that a node answered for a client. */
  onAsked(method: string): void {
    this.budget.earnByRequest(this.unitsOf(method));
  }

  /** Counts units that forebay spends. `clientId`: the client for which something is learned or proven, if it is one alone. */
  spend(purpose: UnitPurpose, units: number, clientId?: string): void {
    this.#metrics.stateUnitsSpent.inc({ chain: this.#chain, purpose }, units);
    if (purpose === "audit") {
      this.budget.spendOnAudit(units);
    } else if (purpose === "learning") {
      this.budget.spendOnLearning(units, clientId);
    } else if (purpose === "proofs") {
      this.budget.spendOnProofs(units, clientId);
    }
  }

  /** How many times as often as usual known values are compared. */
  get comparisonFactor(): number {
    if (this.#restoredUntilMs === Number.NEGATIVE_INFINITY) {
      return 1;
    }
    if (this.#nowMs() < this.#restoredUntilMs && this.#restoredLeft > 0) {
      return RESTORED_FACTOR;
    }
    this.#restoredUntilMs = Number.NEGATIVE_INFINITY;
    this.budget.raiseAudits(1);
    return 1;
  }

  /** Called with the number of known values that were compared with a node. */
  onCompared(values: number): void {
    this.#restoredLeft -= values;
  }

  /** Called with each local result of a read or call. Returns whether to compare it with a node. */
  takeSample(isProven: boolean): boolean {
    // No restored value is proven.
    const factor = isProven ? 1 / PROVEN_DIVISOR : this.comparisonFactor;
    const nowMs = this.#nowMs();
    const sinceMs = nowMs - (isProven ? this.#lastProvenSampleMs : this.#lastSampleMs);
    if (this.#random() >= SAMPLE_SHARE * factor || sinceMs < MIN_SAMPLE_INTERVAL_MS / factor) {
      return false;
    }
    if (isProven) {
      this.#lastProvenSampleMs = nowMs;
    } else {
      this.#lastSampleMs = nowMs;
    }
    return true;
  }

  /**
   * Whether the write set of the next block is worth its units. Called once for each paid source and head.
   * `evidence`: until it is enough, the source saves nothing. `isShared`: its write sets serve the reads of other replicas too.
   */
  shouldFollow(
    unitsPerBlock: number,
    evidence?: EvidenceLeft,
    { isShared = false }: Pick<WriteSetSource, "isShared"> = {},
  ): boolean {
    if (unitsPerBlock === 0) {
      return true;
    }
    const nowMs = this.#nowMs();
    if (nowMs - this.#lastReadMs >= IDLE_MS) {
      return false;
    }
    const blocks = Math.max(1, this.#blocks.total(nowMs));
    const others = isShared ? this.#others : NO_READS;
    const values = this.#repeatedReads.total(nowMs) + others.repeatedReads;
    const repeatedUnits = this.#repeatedUnits.total(nowMs) + others.repeatedUnits;
    const saved = repeatedUnits * savingShare(blocks, values, evidence);
    return saved >= MIN_GAIN * unitsPerBlock * blocks;
  }

  /**
   * Whether the write sets of a pause cost less than reading the values of the last minute again, one by one. If not, known
   * values are dropped.
   */
  shouldCatchUp(missedBlocks: number, unitsPerBlock: number): boolean {
    return missedBlocks * unitsPerBlock < this.#used.size * this.unitsOf("eth_getStorageAt");
  }

  /** Called with the reads of the last minute that the other replicas repeat. */
  countOthers(others: RepeatedReads): void {
    this.#others = others;
  }

  /** Returns the sums of the last minute. */
  get recent(): RecentReads {
    const nowMs = this.#nowMs();
    return {
      repeatedUnits: this.#repeatedUnits.total(nowMs),
      repeatedReads: this.#repeatedReads.total(nowMs),
      blocks: this.#blocks.total(nowMs),
    };
  }

  /** Goes on with the reads before a restart, as if they were of now. `block` is the newest one that is known. */
  resume({ repeatedUnits, repeatedReads, blocks }: RecentReads, block: bigint): void {
    const nowMs = this.#nowMs();
    this.#repeatedUnits.add(repeatedUnits, nowMs);
    this.#repeatedReads.add(repeatedReads, nowMs);
    this.#blocks.add(blocks, nowMs);
    this.#newestBlock = block > this.#newestBlock ? block : this.#newestBlock;
    this.#lastReadMs = nowMs;
    this.#restoredUntilMs = nowMs + RESTORED_MS;
    this.#restoredLeft = RESTORED_COMPARISONS;
    this.budget.raiseAudits(RESTORED_FACTOR);
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

/** Returns the share of the horizon in which a source saves: the time after its probation. Blocks and values are those of a minute. */
const savingShare = (blocks: number, values: number, { blocksLeft, valuesLeft }: EvidenceLeft = ENOUGH): number => {
  const periods = Math.max(blocksLeft / blocks, valuesLeft / Math.max(1, values));
  return Math.max(0, 1 - (periods * PERIOD_MS) / HORIZON_MS);
};

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

/**
 * The provider units that one chain may spend in the background. Requests that nodes answer earn units for everything that is
 * learned: values after a drop, and the values that calls read. What known state saves earns units for audits, which learning
 * cannot use up. One client may use as much of a minute of learning as it leaves to others.
 */
export class BackgroundBudget {
  readonly #limits: LearningLimits;
  readonly #nowMs: () => number;
  readonly #learned = new SlidingSum(PERIOD_MS);
  readonly #learning: TokenBucket;
  readonly #audits = new TokenBucket(MAX_AUDIT_UNITS, 0);
  #auditShare = AUDIT_SHARE;
  /** The units of each client since `#clientsSinceMs`. */
  readonly #clients = new Map<string, number>();
  #clientsSinceMs = Number.NEGATIVE_INFINITY;

  constructor(limits: LearningLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    const { unitsPerMinute } = limits;
    this.#learning = new TokenBucket(unitsPerMinute, Math.min(FIRST_UNITS, unitsPerMinute));
  }

  /** Units that the next audit may cost. Below 0 after an audit that cost more than expected. */
  get forAudit(): number {
    return this.#audits.tokens;
  }

  /** Units that learning may cost now. */
  get forLearning(): number {
    return Math.max(0, Math.min(this.#learning.tokens, this.#leftInMinute));
  }

  /** Units that learning for one client may cost now. */
  forLearningOf(clientId: string): number {
    return Math.max(0, Math.min(this.#learning.tokens, this.forProofsOf(clientId)));
  }

  /** Units that the proofs which one client requires may cost now. Requests that nodes answer need not earn them. */
  forProofsOf(clientId: string): number {
    this.#rotate();
    return Math.max(0, (this.#leftInMinute - (this.#clients.get(clientId) ?? 0)) / 2);
  }

  /** Called with the units of a request that a node answered. A quiet hour does not pay for a burst. */
  earnByRequest(units: number): void {
    this.#learning.earn(this.#limits.share * units);
  }

  /** Called with the units of a read that known state answered. */
  earnBySaving(units: number): void {
    this.#audits.earn(this.#auditShare * units);
  }

  /** Allows this many times the audits, and a first one at once. 1: the usual number. */
  raiseAudits(factor: number): void {
    this.#auditShare = AUDIT_SHARE * factor;
    this.#audits.earn(factor > 1 ? FIRST_UNITS : 0);
  }

  spendOnAudit(units: number): void {
    this.#audits.spend(units);
  }

  /** `clientId`: absent if several clients need what is learned. */
  spendOnLearning(units: number, clientId?: string): void {
    this.#learning.spend(units);
    this.spendOnProofs(units, clientId);
  }

  /** They count to the minute of learning. */
  spendOnProofs(units: number, clientId?: string): void {
    this.#learned.add(units, this.#nowMs());
    if (clientId !== undefined) {
      this.#rotate();
      this.#clients.set(clientId, (this.#clients.get(clientId) ?? 0) + units);
    }
  }

  get #leftInMinute(): number {
    return this.#limits.unitsPerMinute - this.#learned.total(this.#nowMs());
  }

  #rotate(): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#clientsSinceMs >= PERIOD_MS) {
      this.#clients.clear();
      this.#clientsSinceMs = nowMs;
    }
  }
}
