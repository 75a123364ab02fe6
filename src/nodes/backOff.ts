/** What a call of forebay's own shows about failures: the same, the opposite, or nothing, because it was not sent. */
export type Confirmation = "confirmed" | "contradicted" | "notAsked";

/** The numbers of one cause. */
export interface BackOffNumbers {
  /** Failures in a row after which it begins. */
  readonly failures: number;
  readonly openMs: number;
  /** Each trial that fails doubles the time until the next one, up to this time. Default: `openMs`. */
  readonly maxOpenMs?: number;
}

export interface BackOffOptions extends BackOffNumbers {
  readonly nowMs?: () => number;
  readonly onChange?: (isOpen: boolean) => void;
  /**
   * Sends a call of forebay's own. Unless it fails too, the back-off does not begin: the failures may be those of one client's
   * calls. Default: each failure counts.
   */
  readonly confirm?: (() => Promise<Confirmation>) | undefined;
}

/** A failure. */
export interface Failure {
  /** When its request began. A request that began before the last failure shows nothing new, and has no effect. */
  readonly startMs?: number | undefined;
  /** The time until the next trial, as the node names it. Default: that of the numbers. */
  readonly forMs?: number | undefined;
}

/** Begins after failures in a row. At the end of its time one trial decides whether it ends. */
export class BackOff {
  readonly #maxFailures: number;
  readonly #firstOpenMs: number;
  readonly #maxOpenMs: number;
  readonly #nowMs: () => number;
  readonly #onChange: ((isOpen: boolean) => void) | undefined;
  readonly #confirm: (() => Promise<Confirmation>) | undefined;
  #isConfirming = false;
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #openMs: number;
  #openUntilMs: number | undefined;
  /** When the requests could begin of which one has made the time longer. */
  #triedFromMs = Number.POSITIVE_INFINITY;
  #isTried = false;

  constructor({
    failures,
    openMs,
    maxOpenMs = openMs,
    nowMs = () => performance.now(),
    onChange,
    confirm,
  }: BackOffOptions) {
    this.#maxFailures = failures;
    this.#firstOpenMs = openMs;
    this.#openMs = openMs;
    this.#maxOpenMs = maxOpenMs;
    this.#nowMs = nowMs;
    this.#onChange = onChange;
    this.#confirm = confirm;
  }

  /** It has begun, and no trial has succeeded since. */
  get isOpen(): boolean {
    return this.#openUntilMs !== undefined;
  }

  /** False until the time of a trial, and while one is in flight. */
  get available(): boolean {
    return this.#openUntilMs === undefined || (this.#isDue() && !this.#isTried && !this.#isConfirming);
  }

  /** The next request decides whether it ends. */
  get needsTrial(): boolean {
    return this.isOpen && this.available;
  }

  /** The time until the next trial; 0 if it has not begun. */
  get retryInMs(): number {
    return this.#openUntilMs === undefined ? 0 : Math.max(0, this.#openUntilMs - this.#nowMs());
  }

  /** Claims the trial, if one is due and not claimed. Returns whether it did. */
  begin(): boolean {
    const isTrial = this.#isDue() && !this.#isTried;
    this.#isTried ||= isTrial;
    return isTrial;
  }

  /**
   * A request that began after the last failure ends the back-off at any time. Without `startMs` only a trial does: a request that was
   * in flight when the back-off began does not. One that began together with the trial that failed shows that the cause is the load:
   * the time does not become longer.
   */
  succeeded(startMs = Number.NEGATIVE_INFINITY): void {
    this.#failures = 0;
    if (this.#openUntilMs === undefined) {
      return;
    }
    if (startMs === Number.NEGATIVE_INFINITY ? this.#isDue() : startMs >= this.#failedMs) {
      this.reset();
    } else if (startMs >= this.#triedFromMs) {
      this.#openMs = this.#firstOpenMs;
      this.#openUntilMs = Math.min(this.#openUntilMs, this.#failedMs + this.#openMs);
    }
  }

  /** Ends it. */
  reset(): void {
    this.#isTried = false;
    this.#failures = 0;
    this.#openMs = this.#firstOpenMs;
    if (this.#openUntilMs !== undefined) {
      this.#openUntilMs = undefined;
      this.#onChange?.(false);
    }
  }

  /** Returns whether the failure had an effect. */
  failed({ startMs, forMs = 0 }: Failure = {}): boolean {
    if (startMs !== undefined && startMs < this.#failedMs) {
      return false;
    }
    this.#failedMs = this.#nowMs();
    this.#failures += 1;
    this.#isTried = false;
    // The node names a longer time than the usual one. It needs no confirmation.
    if (forMs >= this.#firstOpenMs) {
      this.#openFor(Math.max(forMs, this.retryInMs));
    } else if (this.isOpen ? this.#isDue() : this.#failures >= this.#maxFailures) {
      this.#confirmOr(() => this.#begin(forMs));
    }
    return true;
  }

  /** Records that a request ended without a result that shows anything: its client disconnected. */
  release(): void {
    this.#isTried = false;
  }

  /** Without an answer it stays as it is. The next failure asks again. */
  #confirmOr(begin: () => void): void {
    if (this.#confirm === undefined) {
      begin();
    } else if (!this.#isConfirming) {
      this.#isConfirming = true;
      void this.#confirm().then((confirmation) => {
        this.#isConfirming = false;
        if (confirmation === "confirmed") {
          begin();
        } else if (confirmation === "contradicted") {
          this.reset();
        }
      });
    }
  }

  /** Begins, or begins again after a trial that failed. */
  #begin(forMs: number): void {
    if (this.isOpen) {
      this.#openMs = Math.min(this.#openMs * 2, this.#maxOpenMs);
    }
    this.#openFor(forMs > 0 ? forMs : this.#openMs, forMs > 0 ? undefined : this.#openUntilMs);
  }

  #openFor(forMs: number, triedFromMs = Number.POSITIVE_INFINITY): void {
    const wasOpen = this.isOpen;
    this.#triedFromMs = triedFromMs;
    this.#openUntilMs = this.#nowMs() + forMs;
    if (!wasOpen) {
      this.#onChange?.(true);
    }
  }

  #isDue(): boolean {
    return this.#openUntilMs !== undefined && this.#nowMs() >= this.#openUntilMs;
  }
}
