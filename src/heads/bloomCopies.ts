import { BLOOM_BYTES } from "../ethereum/bloom.ts";

const BLOOMS_PER_BUFFER = 64;

/** Copies of blooms that share buffers: a typed array with a buffer of its own takes twice the memory of a bloom. */
export class BloomCopies {
  #buffer = new Uint8Array(0);
  #usedBytes = 0;

  /** Returns a view of the copy. A buffer is freed when none of its blooms is used any more. */
  copy(bloom: Uint8Array): Uint8Array {
    if (this.#usedBytes === this.#buffer.length) {
      this.#buffer = new Uint8Array(BLOOMS_PER_BUFFER * BLOOM_BYTES);
      this.#usedBytes = 0;
    }
    const copy = this.#buffer.subarray(this.#usedBytes, this.#usedBytes + BLOOM_BYTES);
    copy.set(bloom);
    this.#usedBytes += BLOOM_BYTES;
    return copy;
  }
}
