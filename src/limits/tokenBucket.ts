/** Tokens that are earned, up to a limit, and spent. */
export class TokenBucket {
  readonly #max: number;
  #tokens: number;

  constructor(max: number, tokens: number) {
    this.#max = max;
    this.#tokens = tokens;
  }

  /** Below 0 after more tokens were spent than there were. */
  get tokens(): number {
    return this.#tokens;
  }

  earn(tokens: number): void {
    this.#tokens = Math.min(this.#max, this.#tokens + tokens);
  }

  /** Spends one token, if there is one. Returns whether it did. */
  take(): boolean {
    if (this.#tokens < 1) {
      return false;
    }
    this.#tokens -= 1;
    return true;
  }

  spend(tokens: number): void {
    this.#tokens -= tokens;
  }
}
