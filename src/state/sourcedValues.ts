import type { BlockId } from "../core/heads.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import type { BlockValues } from "./blockValues.ts";
import type { StateDifference } from "./stateAudit.ts";
import type { StateKey } from "./stateKey.ts";
import type { WriteSet, WriteSetSource } from "./writeSet.ts";

/** A source on probation is asked only if no other source had the write sets of this number of blocks. */
const PROVEN_BLOCKS = 8n;

const isOnProbation = ({ probation }: WriteSetSource): boolean => probation?.isOver === false;

/**
 * The known values with the sources whose write sets carried them to the newest block.
 * Values of sources on probation are compared with those of nodes, and answer no read. They are not mixed with values of other sources.
 */
export class SourcedValues {
  readonly #values: BlockValues;
  /** Sources of the write sets that were applied since the values began. */
  readonly #applied = new Set<WriteSetSource>();
  #newestProven: bigint | undefined;

  constructor(values: BlockValues) {
    this.#values = values;
  }

  /** Whether to ask a source for the write set of this block. */
  isUsable(source: WriteSetSource, { number }: BlockId): boolean {
    const isReplaced = this.#newestProven !== undefined && number - this.#newestProven <= PROVEN_BLOCKS;
    return source.isResting !== true && !(isReplaced && isOnProbation(source));
  }

  /** Whether the known values stay after a write set of this source. */
  canContinue(source: WriteSetSource): boolean {
    return this.#applied.size === 0 || isOnProbation(source) !== this.#values.isProven;
  }

  /** Forgets all values, and makes one block readable. */
  begin(block: BlockId): void {
    this.#applied.clear();
    this.#values.begin(block);
  }

  /** Forgets all values. No block is readable then. */
  clear(): void {
    this.#applied.clear();
    this.#values.clear();
  }

  /** Called when this source had the write set of a block. */
  noteBlock(source: WriteSetSource, { number }: BlockId): void {
    if (!isOnProbation(source)) {
      this.#newestProven = number;
    }
  }

  /** See BlockValues. */
  apply(source: WriteSetSource, writeSet: WriteSet): Generator<void, boolean> {
    this.#applied.add(source);
    this.#updateProven();
    return this.#values.apply(writeSet);
  }

  /** Adds a value that a node returned for this block's hash. Returns the difference if another value is known. */
  enter(key: StateKey, block: BlockId, value: string | Uint8Array): StateDifference | undefined {
    const values = this.#values;
    const result = typeof value === "string" ? values.enter(key, block, value) : values.enterCode(key, block, value);
    if (result === "different") {
      const actual = typeof value === "string" ? value : keccak256Hex(value).slice(2);
      return { key, block, known: values.getUnproven(key, block) ?? "", actual };
    }
    if (result === "agreed" && !values.isProven) {
      this.#recordAgreement(key, block);
    }
    return undefined;
  }

  #recordAgreement(key: StateKey, block: BlockId): void {
    for (const { probation } of this.#applied) {
      probation?.recordAgreement(key, block);
    }
    this.#updateProven();
  }

  #updateProven(): void {
    this.#values.isProven = ![...this.#applied].some(isOnProbation);
  }
}
