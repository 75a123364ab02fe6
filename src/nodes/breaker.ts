export interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  readonly failures: number;
  readonly openMs: number;
  /** Each failed probe doubles the time until the next one, up to this time. Default: `openMs`. */
  readonly maxOpenMs?: number;
  readonly nowMs?: () => number;
  readonly onChange?: (open: boolean) => void;
}

/** Opens after consecutive failures. Then one probe decides whether it closes again (half open). */
export class Breaker {
  readonly #maxFailures: number;
  readonly #firstOpenMs: number;
  readonly #maxOpenMs: number;
  readonly #nowMs: () => number;
  readonly #onChange: ((open: boolean) => void) | undefined;
  #failures = 0;
  #openMs: number;
  #openUntilMs: number | undefined;
  #isProbing = false;

  constructor({ failures, openMs, maxOpenMs = openMs, nowMs = () => performance.now(), onChange }: BreakerOptions) {
    this.#maxFailures = failures;
    this.#firstOpenMs = openMs;
    this.#openMs = openMs;
    this.#maxOpenMs = maxOpenMs;
    this.#nowMs = nowMs;
    this.#onChange = onChange;
  }

  /** True if the breaker is closed, or half open without a probe in flight. */
  get available(): boolean {
    return this.#openUntilMs === undefined || (this.#isHalfOpen() && !this.#isProbing);
  }

  /** Records that a request is sent. If the breaker is half open, the request is the probe. */
  begin(): void {
    this.#isProbing = this.#isHalfOpen();
  }

  succeeded(): void {
    this.#isProbing = false;
    this.#failures = 0;
    // A request that was in flight when the breaker opened does not close it.
    if (this.#isHalfOpen()) {
      this.reset();
    }
  }

  /** Closes the breaker. */
  reset(): void {
    this.#isProbing = false;
    this.#failures = 0;
    this.#openMs = this.#firstOpenMs;
    if (this.#openUntilMs !== undefined) {
      this.#openUntilMs = undefined;
      this.#onChange?.(false);
    }
  }

  /** `openForMs`: the time until the next probe. Default: that of the options. */
  failed(openForMs?: number): void {
    this.#failures += 1;
    this.#isProbing = false;
    if (this.#openUntilMs === undefined && this.#failures >= this.#maxFailures) {
      this.open(openForMs ?? this.#openMs);
    } else if (this.#isHalfOpen()) {
      this.#openMs = Math.min(this.#openMs * 2, this.#maxOpenMs);
      this.#openUntilMs = this.#nowMs() + (openForMs ?? this.#openMs);
    }
  }

  /** Opens the breaker for this time at least. */
  open(forMs: number): void {
    const wasOpen = this.#openUntilMs !== undefined;
    this.#openUntilMs = Math.max(this.#openUntilMs ?? 0, this.#nowMs() + forMs);
    if (!wasOpen) {
      this.#onChange?.(true);
    }
  }

  /** Records that a request ended without a result that shows the node's health: its client disconnected. */
  release(): void {
    this.#isProbing = false;
  }

  #isHalfOpen(): boolean {
    return this.#openUntilMs !== undefined && this.#nowMs() >= this.#openUntilMs;
  }
}
