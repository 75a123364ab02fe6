/** Reads that one generation remembers. Reads beyond it count as new. */
const MAX_READS = 100_000;

/** `sameBlock`: an equal read named this block or a newer one. `repeated`: one named an older block. */
export type Repetition = "new" | "repeated" | "sameBlock";

/** The newest block of each read, since one moment. */
interface Generation {
  readonly blocks: Map<string, bigint>;
  readonly sinceMs: number;
}

const begin = (sinceMs: number): Generation => ({ blocks: new Map(), sinceMs });

/** Remembers reads, with the newest block of each, for one to two periods. */
export class RepeatedReads {
  readonly #periodMs: number;
  #current = begin(Number.NEGATIVE_INFINITY);
  #previous = begin(Number.NEGATIVE_INFINITY);

  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  /** Remembers a read, and compares it with earlier ones. */
  record(read: string, block: bigint, nowMs: number): Repetition {
    this.#rotate(nowMs);
    const { blocks } = this.#current;
    const last = blocks.get(read) ?? this.#previous.blocks.get(read);
    if (last !== undefined && last >= block) {
      return "sameBlock";
    }
    if (blocks.size < MAX_READS || blocks.has(read)) {
      blocks.set(read, block);
    }
    return last === undefined ? "new" : "repeated";
  }

  /** Returns the number of different reads of the last period, approximately. */
  count(nowMs: number): number {
    this.#rotate(nowMs);
    return Math.max(this.#current.blocks.size, this.#previous.blocks.size);
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
