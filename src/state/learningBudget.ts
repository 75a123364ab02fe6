import { SlidingSum } from "./slidingSum.ts";
import type { UnitLedger } from "./unitLedger.ts";

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

/**
 * Limits the provider units of everything that one chain learns in the background: values after a drop, and the values that
 * calls read. A request that a node answers adds to them. One client may use as much of a minute as it leaves to others.
 */
export class LearningBudget {
  readonly #limits: LearningLimits;
  readonly #ledger: Pick<UnitLedger, "spend">;
  readonly #nowMs: () => number;
  readonly #spent = new SlidingSum(PERIOD_MS);
  #earned: number;
  /** The units of each client since `#clientsSinceMs`. */
  readonly #clients = new Map<string, number>();
  #clientsSinceMs = Number.NEGATIVE_INFINITY;

  constructor(limits: LearningLimits, ledger: Pick<UnitLedger, "spend">, nowMs: () => number) {
    this.#limits = limits;
    this.#ledger = ledger;
    this.#nowMs = nowMs;
    this.#earned = Math.min(FIRST_UNITS, limits.unitsPerMinute);
  }

  /** Units that learning may cost now. */
  get units(): number {
    return Math.max(0, Math.min(this.#earned, this.#leftInMinute));
  }

  /** Units that learning for one client may cost now. */
  unitsFor(clientId: string): number {
    this.#rotate();
    const ofClient = (this.#leftInMinute - (this.#clients.get(clientId) ?? 0)) / 2;
    return Math.max(0, Math.min(this.#earned, ofClient));
  }

  /** Called with the units of a request that a node answered. A quiet hour does not pay for a burst. */
  earn(units: number): void {
    const { share, unitsPerMinute } = this.#limits;
    this.#earned = Math.min(unitsPerMinute, this.#earned + share * units);
  }

  /** Counts units. `clientId`: absent if several clients need what is learned. */
  spend(units: number, clientId?: string): void {
    this.#ledger.spend("learning", units);
    this.#spent.add(units, this.#nowMs());
    this.#earned -= units;
    if (clientId !== undefined) {
      this.#rotate();
      this.#clients.set(clientId, (this.#clients.get(clientId) ?? 0) + units);
    }
  }

  get #leftInMinute(): number {
    return this.#limits.unitsPerMinute - this.#spent.total(this.#nowMs());
  }

  #rotate(): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#clientsSinceMs >= PERIOD_MS) {
      this.#clients.clear();
      this.#clientsSinceMs = nowMs;
    }
  }
}
