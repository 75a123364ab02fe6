const PERIOD_MS = 50;
const KEPT_MS = 20_000;
/** The time in which forebay learns of a new head, also while a node is slow or lies. */
const MAX_LAG_MS = 5_000;
/** The same while no fault is active: a poll is due each quarter of a block, and its response is verified. */
const QUIET_LAG_MS = 1_000;
/** The effects of a fault last for up to this time after its end. */
export const RECOVERY_MS = 1_500;
/** A step of forebay takes several turns of several processes. */
const TURNS = 20;
/** A longer delay is no reason for a longer lag: the bounds would prove nothing on a slow machine. */
const MAX_SLOWNESS_MS = 2_000;
const MAX_PERIODS = 64;

interface Period {
  readonly startMs: number;
  endMs: number;
}

/** Returns the lag that is allowed because timers were late by `delayMs`. */
const slownessMs = (delayMs: number): number => Math.min(MAX_SLOWNESS_MS, TURNS * delayMs);

/** The longest lag that is allowed: a constant, and more while other programs take the processor from this one. */
export class LagBound {
  readonly #delays: { readonly atMs: number; readonly delayMs: number }[] = [];
  readonly #faults: Period[] = [];
  #dueMs = performance.now() + PERIOD_MS;
  readonly #timer = setInterval(() => this.#measure(), PERIOD_MS).unref();
  readonly #maxLagMs: number;

  constructor(maxLagMs = MAX_LAG_MS) {
    this.#maxLagMs = maxLagMs;
  }

  /** Returns the longest allowed lag of what began at `fromMs`, with or without a fault. */
  since(fromMs: number): number {
    return this.#maxLagMs + slownessMs(this.#delaySince(fromMs));
  }

  /** Returns the longest allowed lag of an answer. Without a fault, it is a second. */
  ofAnswer(startMs: number, endMs: number): number {
    return (this.isQuiet(startMs, endMs) ? QUIET_LAG_MS : this.#maxLagMs) + slownessMs(this.#delaySince(startMs));
  }

  /** Whether no fault was active, and the effects of earlier ones were over. */
  isQuiet(startMs: number, endMs: number): boolean {
    return !this.#faults.some((fault) => fault.startMs <= endMs && fault.endMs + RECOVERY_MS >= startMs);
  }

  /** Whether other programs took the processor for this time, shortly before or since `fromMs`. */
  wasSlow(fromMs: number, delayMs: number): boolean {
    return this.#delaySince(fromMs) >= delayMs;
  }

  /** Returns the function that ends the fault. */
  beginFault(): () => void {
    const period: Period = { startMs: performance.now(), endMs: Number.POSITIVE_INFINITY };
    this.#faults.push(period);
    this.#faults.splice(0, this.#faults.length - MAX_PERIODS);
    return () => {
      period.endMs = performance.now();
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #delaySince(fromMs: number): number {
    let longest = 0;
    for (let index = this.#delays.length - 1; index >= 0; index--) {
      const delay = this.#delays[index];
      if (delay === undefined || delay.atMs < fromMs - KEPT_MS) {
        break;
      }
      longest = Math.max(longest, delay.delayMs);
    }
    return longest;
  }

  #measure(): void {
    const atMs = performance.now();
    this.#delays.push({ atMs, delayMs: Math.max(0, atMs - this.#dueMs) });
    this.#dueMs = atMs + PERIOD_MS;
    while (this.#delays.length > MAX_DELAYS) {
      this.#delays.shift();
    }
  }
}

const MAX_DELAYS = (3 * KEPT_MS) / PERIOD_MS;
