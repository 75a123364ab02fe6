import { type Clock, systemClock } from "./clock.ts";

/** The clock looks at the event loop at this interval, and advances by MAX_STEP_MS at most until it looks again. */
const TICK_MS = 100;
const MAX_STEP_MS = 200;

/**
 * A clock that stops while the event loop of this process stands still, so that this time counts against nobody who is awaited.
 * It runs until the signal is aborted.
 */
export class LoopClock implements Clock {
  #tickedMs = performance.now();
  /** The time for which the loop stood still. */
  #stoodMs = 0;

  constructor(signal: AbortSignal) {
    const ticks = setInterval(() => this.#tick(), TICK_MS).unref();
    signal.addEventListener("abort", () => clearInterval(ticks), { once: true });
  }

  nowMs(): number {
    return Math.min(performance.now(), this.#tickedMs + MAX_STEP_MS) - this.#stoodMs;
  }

  async sleep(forMs: number, signal: AbortSignal): Promise<void> {
    const endMs = this.nowMs() + forMs;
    let leftMs = forMs;
    do {
      await systemClock.sleep(Math.ceil(leftMs), signal);
      leftMs = endMs - this.nowMs();
    } while (leftMs > 0 && !signal.aborted);
  }

  #tick(): void {
    const nowMs = performance.now();
    this.#stoodMs += Math.max(0, nowMs - this.#tickedMs - MAX_STEP_MS);
    this.#tickedMs = nowMs;
  }
}
