import { type Clock, systemClock } from "../core/clock.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";

const { windowSeconds, share, leastSends } = RETRY_LIMITS.budget;
const SECOND_MS = 1_000;

interface Second {
  /** The second of the clock that the counts belong to. */
  at: number;
  reads: number;
  extraSends: number;
}

/**
 * Limits the hedges and the retries after the first one to a share of the reads of the last seconds. Without a limit, a chain whose nodes
 * fail would get a multiple of its load.
 */
export class RetryBudget {
  readonly #clock: Clock;
  readonly #seconds: Second[] = Array.from({ length: windowSeconds }, () => ({ at: -1, reads: 0, extraSends: 0 }));

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  recordRead(): void {
    this.#current().reads += 1;
  }

  /** Takes one hedge or further retry. Returns false if the budget is exhausted. */
  take(): boolean {
    const current = this.#current();
    let reads = 0;
    let extraSends = 0;
    for (const second of this.#seconds) {
      if (second.at > current.at - windowSeconds) {
        reads += second.reads;
        extraSends += second.extraSends;
      }
    }
    if (extraSends >= Math.max(leastSends, reads * share)) {
      return false;
    }
    current.extraSends += 1;
    return true;
  }

  #current(): Second {
    const at = Math.floor(this.#clock.nowMs() / SECOND_MS);
    const second = this.#seconds[at % windowSeconds];
    if (second === undefined) {
      throw new Error("the window has no second");
    }
    if (second.at !== at) {
      second.at = at;
      second.reads = 0;
      second.extraSends = 0;
    }
    return second;
  }
}
