/** Characters of reads that one generation remembers. Reads beyond it do not count as repeated. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** The newest block of each read, since one moment. */
interface Generation {
  readonly blocks: Map<string, bigint>;
  readonly sinceMs: number;
  characters: number;
}

const begin = (sinceMs: number): Generation => ({ blocks: new Map(), sinceMs, characters: 0 });

/**
 * Remembers which reads were made, with the newest block of each, for one to two periods.
 * A read is the canonical text of its parameters without the block.
 */
export class RepeatedReads {
  readonly #periodMs: number;
  #current = begin(Number.NEGATIVE_INFINITY);
  #previous = begin(Number.NEGATIVE_INFINITY);

  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  /** Remembers a read. Returns whether it repeats one of an earlier block. Equal reads of one block count once. */
  record(read: string, block: bigint, nowMs: number): boolean {
    this.#rotate(nowMs);
    const current = this.#current;
    const last = current.blocks.get(read) ?? this.#previous.blocks.get(read);
    if (last !== undefined && last >= block) {
      return false;
    }
    if (!current.blocks.has(read)) {
      if (current.characters + read.length > MAX_CHARACTERS) {
        return false;
      }
      current.characters += read.length;
    }
    current.blocks.set(read, block);
    return last !== undefined;
  }

  #rotate(nowMs: number): void {
    const ageMs = nowMs - this.#current.sinceMs;
    if (ageMs < this.#periodMs) {
      return;
    }
    this.#previous = ageMs < 2 * this.#periodMs ? this.#current : begin(nowMs);
    this.#current = begin(nowMs);
  }
}
