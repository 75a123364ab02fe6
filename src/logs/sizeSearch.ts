/** If the bounds are closer than this factor, the search ends. */
const CLOSE_ENOUGH = 1.15;

/** A search that another process continues. */
export interface SavedSearch {
  readonly declared?: number | undefined;
  readonly lowerBound: number;
  readonly upperBound?: number | undefined;
}

const isSize = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

/** Searches the largest size that a node accepts, between the largest success and the smallest failure. */
export class SizeSearch {
  #declared: number | undefined;
  #lowerBound = 0;
  #upperBound = Number.POSITIVE_INFINITY;

  /** The size to request next; Infinity before the first failure. */
  get size(): number {
    if (this.#declared !== undefined) {
      return this.#declared;
    }
    if (this.#upperBound === Number.POSITIVE_INFINITY) {
      return this.#upperBound;
    }
    if (this.#lowerBound * CLOSE_ENOUGH >= this.#upperBound) {
      return this.#lowerBound;
    }
    return Math.max(1, Math.floor((this.#lowerBound + this.#upperBound) / 2));
  }

  /** Uses the limit from the node's error message. */
  declare(limit: number): void {
    this.#declared = limit;
  }

  recordFailure(size: number): void {
    if (this.#declared !== undefined && size <= this.#declared) {
      this.#declared = undefined;
    }
    this.#upperBound = Math.min(this.#upperBound, size);
    if (this.#lowerBound >= this.#upperBound) {
      this.#lowerBound = 0;
    }
  }

  recordSuccess(size: number): void {
    if (size < this.#upperBound) {
      this.#lowerBound = Math.max(this.#lowerBound, size);
    }
  }

  /** Whether a request of about this size was accepted, or any was refused. A range may end early, with a segment. */
  isTried(size: number): boolean {
    const isAccepted = this.#lowerBound * CLOSE_ENOUGH >= size;
    return isAccepted || this.#declared !== undefined || this.#upperBound !== Number.POSITIVE_INFINITY;
  }

  save(): SavedSearch {
    const upperBound = Number.isFinite(this.#upperBound) ? this.#upperBound : undefined;
    return { declared: this.#declared, lowerBound: this.#lowerBound, upperBound };
  }

  /** Continues a saved search. Does nothing if this process has found a limit, or if the values are not sizes. */
  restore({ declared, lowerBound, upperBound }: Readonly<Record<keyof SavedSearch, unknown>>): void {
    if (this.#declared !== undefined || Number.isFinite(this.#upperBound)) {
      return;
    }
    this.#declared = isSize(declared) && declared > 0 ? declared : undefined;
    this.#upperBound = isSize(upperBound) && upperBound > 0 ? upperBound : Number.POSITIVE_INFINITY;
    if (isSize(lowerBound) && lowerBound < this.#upperBound) {
      this.#lowerBound = Math.max(this.#lowerBound, lowerBound);
    }
  }
}
