import { crc32 } from "node:zlib";
import type { BlockId } from "../../core/heads.ts";
import type { Repetition } from "../usedKeys.ts";

/** Calls that share a place. A new one replaces the one with the oldest block. */
const WAYS = 4;
const SETS = 16_384;

/** Block numbers are compared by their low 32 bits: 27 years of blocks of 200 ms. */
const lowBits = (block: bigint): number => Number(BigInt.asUintN(32, block));

/**
 * Remembers the newest block of about 65,536 calls in 512 kB, by the hash of their text. Most calls are requested once, and
 * an object for each would outlive the young generation of the heap. Two calls with one hash count as one, which
 * only lets a call be learned at its first request.
 */
export class SeenCalls {
  readonly #hashes = new Uint32Array(WAYS * SETS);
  readonly #blocks = new Uint32Array(WAYS * SETS);

  /** Records a request, and compares it with earlier ones of the same call. */
  record(key: string, { number }: BlockId): Repetition {
    const hash = crc32(key);
    const block = lowBits(number);
    const first = (hash % SETS) * WAYS;
    let oldest = first;
    for (let index = first; index < first + WAYS; index++) {
      if (this.#hashes[index] === hash) {
        return this.#repeat(index, block);
      }
      if ((this.#blocks[index] ?? 0) < (this.#blocks[oldest] ?? 0)) {
        oldest = index;
      }
    }
    this.#hashes[oldest] = hash;
    this.#blocks[oldest] = block;
    return "new";
  }

  #repeat(index: number, block: number): Repetition {
    if ((this.#blocks[index] ?? 0) >= block) {
      return "sameBlock";
    }
    this.#blocks[index] = block;
    return "repeated";
  }
}
