export interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  readonly failures: number;
  readonly openMs: number;
  readonly nowMs?: () => number;
  readonly onChange?: (open: boolean) => void;
}

export interface Breaker {
  /** True if the breaker is closed, or half open without a probe in flight. */
  readonly available: boolean;
  /** Records that a request is sent. If the breaker is half open, the request is the probe. */
  begin(): void;
  succeeded(): void;
  failed(): void;
  /** Records that a request ended without a result that shows the node's health: its client disconnected. */
  release(): void;
}

class CircuitBreaker implements Breaker {
  readonly #maxFailures: number;
  readonly #openMs: number;
  readonly #nowMs: () => number;
  readonly #onChange: ((open: boolean) => void) | undefined;
  #failures = 0;
  #openUntilMs: number | undefined;
  #isProbing = false;

  constructor({ failures, openMs, nowMs = () => performance.now(), onChange }: BreakerOptions) {
    this.#maxFailures = failures;
    this.#openMs = openMs;
    this.#nowMs = nowMs;
    this.#onChange = onChange;
  }

  get available(): boolean {
    return this.#openUntilMs === undefined || (this.#isHalfOpen() && !this.#isProbing);
  }

  begin(): void {
    this.#isProbing = this.#isHalfOpen();
  }

  succeeded(): void {
    this.#isProbing = false;
    this.#failures = 0;
    // A request that was in flight when the breaker opened does not close it.
    if (this.#isHalfOpen()) {
      this.#openUntilMs = undefined;
      this.#onChange?.(false);
    }
  }

  failed(): void {
    this.#failures += 1;
    this.#isProbing = false;
    if (this.#openUntilMs === undefined && this.#failures >= this.#maxFailures) {
      this.#openUntilMs = this.#nowMs() + this.#openMs;
      this.#onChange?.(true);
    } else if (this.#isHalfOpen()) {
      this.#openUntilMs = this.#nowMs() + this.#openMs;
    }
  }

  release(): void {
    this.#isProbing = false;
  }

  #isHalfOpen(): boolean {
    return this.#openUntilMs !== undefined && this.#nowMs() >= this.#openUntilMs;
  }
}

/** Creates a breaker: it opens after consecutive failures, then one probe decides whether it closes again (half open). */
export const createBreaker = (options: BreakerOptions): Breaker => new CircuitBreaker(options);
