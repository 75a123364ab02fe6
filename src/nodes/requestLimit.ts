/** A limit that was lowered is lowered again only after this time: the requests in flight show nothing new. */
const LOWERED_MS = 1_000;
/** A node with fewer requests in flight is not busy: fewer would not help it. */
const BUSY_REQUESTS = 2;

/**
 * The HTTP requests that one node gets at a time. The limit is halved if the node is overloaded. It grows by one with each round of
 * responses (additive increase, multiplicative decrease: RFC 5681, section 3.1).
 */
export class RequestLimit {
  readonly #max: number;
  readonly #nowMs: () => number;
  #limit: number;
  #loweredMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, nowMs: () => number = () => performance.now()) {
    this.#max = max;
    this.#nowMs = nowMs;
    this.#limit = max;
  }

  /** At least 1. */
  get requests(): number {
    return Math.floor(this.#limit);
  }

  /** Records a sign of overload, with this number of requests in flight. */
  recordOverload(inFlight: number): void {
    const nowMs = this.#nowMs();
    if (inFlight < BUSY_REQUESTS || nowMs - this.#loweredMs < LOWERED_MS) {
      return;
    }
    this.#loweredMs = nowMs;
    this.#limit = Math.max(1, Math.min(this.#limit, inFlight) / 2);
  }

  recordResponse(): void {
    if (this.#limit < this.#max) {
      this.#limit = Math.min(this.#max, this.#limit + 1 / this.#limit);
    }
  }
}
