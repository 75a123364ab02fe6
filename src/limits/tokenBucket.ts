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

  spend(tokens: number): void {
    this.#tokens -= tokens;
  }
}
