const TICK_MS = 20;

/**
 * Measures stalls of the event loop by the CPU time of this thread between two timers.
 * Other programs on the machine do not change it.
 */
export class StallWatch {
  longestMs = 0;
  #before = process.threadCpuUsage();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Returns the longest stall since the last call. */
  take(): number {
    this.#tick();
    const longest = this.longestMs;
    this.longestMs = 0;
    return longest;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const { user, system } = process.threadCpuUsage(this.#before);
    this.#before = process.threadCpuUsage();
    this.longestMs = Math.max(this.longestMs, (user + system) / 1_000);
  }
}
