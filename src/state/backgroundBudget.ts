import { TokenBucket } from "../limits/tokenBucket.ts";
import { SlidingSum } from "./slidingSum.ts";

/** `chains[].state.learning`. */
export interface LearningLimits {
  /** The share of the units of the requests that nodes answer. */
  readonly share: number;
  /** On all nodes of the chain together, so that no node gets more. */
  readonly unitsPerMinute: number;
}

/** Enough to learn the first values of a quiet chain. */
const FIRST_UNITS = 500;
const PERIOD_MS = 60_000;
/** Audits may cost this share of what is saved. */
const AUDIT_SHARE = 0.02;
/** Unused units for audits add up to this limit, so that a busy hour does not pay for audits of a quiet one. */
export const MAX_AUDIT_UNITS = 10_000;

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
    this.#rotate();
    const ofClient = (this.#leftInMinute - (this.#clients.get(clientId) ?? 0)) / 2;
    return Math.max(0, Math.min(this.#learning.tokens, ofClient));
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
    this.#learned.add(units, this.#nowMs());
    this.#learning.spend(units);
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
