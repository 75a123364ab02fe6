import { crc32 } from "node:zlib";

/** A power of two. A cache of 128 MiB with entries of 2 kB has as many. */
const SLOTS = 65_536;

/** Remembers about the newest 65,536 keys in 256 kB, by their hash. A newer key with the same slot replaces an older one. */
export class RecentKeys {
  readonly #hashes = new Uint32Array(SLOTS);

  add(key: string): void {
    const hash = crc32(key);
    this.#hashes[hash % SLOTS] = hash;
  }

  has(key: string): boolean {
    const hash = crc32(key);
    return hash !== 0 && this.#hashes[hash % SLOTS] === hash;
  }
}
