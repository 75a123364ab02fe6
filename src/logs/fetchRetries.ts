import { RETRY_LIMITS } from "../core/retryPolicy.ts";

/** Counts the retries of one fetch range. */
export class FetchRetries {
  #count: number;

  constructor(count = 0) {
    this.#count = count;
  }

  get hasNext(): boolean {
    return this.#count < RETRY_LIMITS.logs.delaysMs.length;
  }

  /** Counts one retry. Returns the delay before it, or undefined after the last one. */
  next(): number | undefined {
    return this.hasNext ? RETRY_LIMITS.logs.delaysMs[this.#count++] : undefined;
  }

  /** Returns the count for blocks of the range that are fetched again. */
  fork(): FetchRetries {
    return new FetchRetries(this.#count);
  }

  /** Adds the retries of a fork. Forks wait at the same time, so that the highest count is used. */
  join(fork: FetchRetries): void {
    this.#count = Math.max(this.#count, fork.#count);
  }
}
