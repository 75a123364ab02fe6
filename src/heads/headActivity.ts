import type { Clock } from "../core/clock.ts";
import { isIdle } from "./pollSchedule.ts";

/** The time of the last client request to a chain, and the pauses of its background tasks. A request ends the pauses of an idle chain. */
export class HeadActivity {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #lastRequestMs = Number.NEGATIVE_INFINITY;
  #waking = new AbortController();

  /** An abort of `signal` ends all pauses. */
  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  get lastRequestMs(): number {
    return this.#lastRequestMs;
  }

  get isIdle(): boolean {
    return isIdle(this.#lastRequestMs, this.#clock.nowMs());
  }

  /** Records a client request. */
  markActive(): void {
    const nowMs = this.#clock.nowMs();
    const wasIdle = isIdle(this.#lastRequestMs, nowMs);
    this.#lastRequestMs = nowMs;
    if (wasIdle) {
      this.wake();
    }
  }

  /** Ends all pauses. */
  wake(): void {
    this.#waking.abort();
    this.#waking = new AbortController();
  }

  async pause(forMs: number): Promise<void> {
    if (!this.#signal.aborted) {
      await this.#clock.sleep(forMs, this.#waking.signal);
    }
  }
}
