const BUCKETS = 60;

/** Adds up values of the last period. A value leaves the sum in steps of a sixtieth of the period. */
export class SlidingSum {
  readonly #bucketMs: number;
  readonly #values = new Float64Array(BUCKETS);
  /** The number of the newest bucket since time 0. */
  #newest = 0;
  #sum = 0;

  constructor(periodMs: number) {
    this.#bucketMs = periodMs / BUCKETS;
  }

  add(value: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#values[this.#newest % BUCKETS] = (this.#values[this.#newest % BUCKETS] ?? 0) + value;
    this.#sum += value;
  }

  total(nowMs: number): number {
    this.#advance(nowMs);
    return this.#sum;
  }

  /** Clears the buckets between the newest one and that of `nowMs`. */
  #advance(nowMs: number): void {
    const current = Math.floor(nowMs / this.#bucketMs);
    if (current - this.#newest >= BUCKETS) {
      this.#values.fill(0);
      this.#sum = 0;
      this.#newest = current;
      return;
    }
    while (this.#newest < current) {
      this.#newest += 1;
      this.#sum -= this.#values[this.#newest % BUCKETS] ?? 0;
      this.#values[this.#newest % BUCKETS] = 0;
    }
  }
}
