const PERIOD_MS = 50;
const KEPT_MS = 20_000;
/** The time in which forebay learns of a new head, also while a node is slow or lies. */
const MAX_LAG_MS = 5_000;
/** A step of forebay takes several turns of several processes. */
const TURNS = 20;

/** The longest lag that is allowed: a constant, and more while other programs take the processor from this one. */
export class LagBound {
  readonly #delays: { readonly atMs: number; readonly delayMs: number }[] = [];
  #dueMs = performance.now() + PERIOD_MS;
  readonly #timer = setInterval(() => this.#measure(), PERIOD_MS).unref();

  /** Returns the longest allowed lag of what began at `fromMs`. */
  since(fromMs: number): number {
    let longest = 0;
    for (let index = this.#delays.length - 1; index >= 0; index--) {
      const delay = this.#delays[index];
      if (delay === undefined || delay.atMs < fromMs - KEPT_MS) {
        break;
      }
      longest = Math.max(longest, delay.delayMs);
    }
    return MAX_LAG_MS + TURNS * longest;
  }

  close(): void {
    clearInterval(this.#timer);
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
