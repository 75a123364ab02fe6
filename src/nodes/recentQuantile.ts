/** Buckets for each doubling: a quantile is at most 19 % too high. */
const BUCKETS_PER_OCTAVE = 4;
/** The last bucket begins at 65 s. */
const BUCKETS = 64;
/** With this many values, all counts are halved, so that old values lose their weight. */
const MAX_VALUES = 1_000;
const MIN_VALUES = 20;
/** The quantile is computed again after this many values. */
const UPDATE_EVERY = 16;

const bucketOf = (durationMs: number): number =>
  Math.min(BUCKETS - 1, Math.max(0, Math.ceil(Math.log2(Math.max(1, durationMs)) * BUCKETS_PER_OCTAVE)));

/** A quantile of the newest durations, in milliseconds. */
export class RecentQuantile {
  readonly #share: number;
  readonly #counts = new Uint32Array(BUCKETS);
  #values = 0;
  #sinceUpdate = 0;
  #quantileMs: number | undefined;

  /** `share` is 0.95 for the 95th percentile. */
  constructor(share: number) {
    this.#share = share;
  }

  /** Undefined before there are enough values. */
  get valueMs(): number | undefined {
    return this.#quantileMs;
  }

  record(durationMs: number): void {
    const bucket = bucketOf(durationMs);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#values += 1;
    this.#sinceUpdate += 1;
    if (this.#values >= MAX_VALUES) {
      this.#halve();
    }
    if (this.#values >= MIN_VALUES && (this.#sinceUpdate >= UPDATE_EVERY || this.#quantileMs === undefined)) {
      this.#sinceUpdate = 0;
      this.#quantileMs = this.#compute();
    }
  }

  #halve(): void {
    this.#counts.forEach((count, bucket) => {
      this.#counts[bucket] = count >> 1;
    });
    this.#values = this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** The upper bound of the bucket with the quantile. */
  #compute(): number {
    let above = this.#values * (1 - this.#share);
    let bucket = BUCKETS - 1;
    while (bucket > 0 && above >= (this.#counts[bucket] ?? 0)) {
      above -= this.#counts[bucket] ?? 0;
      bucket -= 1;
    }
    return Math.ceil(2 ** (bucket / BUCKETS_PER_OCTAVE));
  }
}
