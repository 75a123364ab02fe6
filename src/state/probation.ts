import type { BlockId } from "../core/heads.ts";
import { keyName, type StateKey } from "./stateKey.ts";

/** The agreement with nodes that a source needs before its values answer reads. */
export interface ProbationLimits {
  /** Blocks at which a value agreed. On slow chains, fewer blocks are enough: those of PROBATION_MS. */
  readonly blocks: number;
  /** Values that agreed, each counted once a block. */
  readonly values: number;
}

/** After this time since the first agreement, MIN_BLOCKS are enough. 32 blocks of 12 s take 6.4 minutes. */
const PROBATION_MS = 64_000;
const MIN_BLOCKS = 8;

/** Counts how often the values of a source agreed with nodes, until that is enough. */
export class Probation {
  readonly #limits: ProbationLimits;
  readonly #nowMs: () => number;
  #firstMs = Number.POSITIVE_INFINITY;
  #blocks = 0;
  #values = 0;
  #newestBlock = -1n;
  /** The values that agreed at `#newestBlock`. */
  readonly #agreed = new Set<string>();

  constructor(limits: ProbationLimits, nowMs: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  get isOver(): boolean {
    return this.blocksLeft === 0 && this.valuesLeft === 0;
  }

  /** Blocks at which a value must still agree. */
  get blocksLeft(): number {
    const { blocks } = this.#limits;
    const isLong = this.#nowMs() - this.#firstMs >= PROBATION_MS;
    return Math.max(0, (isLong ? Math.min(blocks, MIN_BLOCKS) : blocks) - this.#blocks);
  }

  /** Values that must still agree. */
  get valuesLeft(): number {
    return Math.max(0, this.#limits.values - this.#values);
  }

  /** Called when a node returned the value that write sets of the source had predicted for this block. */
  recordAgreement({ field, address, slot }: StateKey, { number }: BlockId): void {
    if (this.isOver || number < this.#newestBlock) {
      return;
    }
    if (number > this.#newestBlock) {
      this.#newestBlock = number;
      this.#firstMs = Math.min(this.#firstMs, this.#nowMs());
      this.#blocks++;
      this.#agreed.clear();
    }
    const name = keyName({ field, address, slot });
    if (!this.#agreed.has(name)) {
      this.#agreed.add(name);
      this.#values++;
    }
  }

  /** Begins again, because a value was wrong. */
  restart(): void {
    this.#blocks = 0;
    this.#values = 0;
    this.#newestBlock = -1n;
    this.#firstMs = Number.POSITIVE_INFINITY;
    this.#agreed.clear();
  }
}
