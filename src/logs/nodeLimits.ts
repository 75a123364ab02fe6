import type { Node } from "../core/node.ts";
import { MAX_RANGE_BLOCKS, rangeBlocksFor } from "./plan.ts";

/** After this number of accepted ranges, one larger range is requested. */
const RANGES_BEFORE_GROWTH = 10;
const GROWTH = 1.25;
/** A range may end early, with a segment. It counts if it is at most this factor shorter. */
const CLOSE_ENOUGH = 1.15;

/** A range that a query requests next. */
interface PlannedBlocks {
  readonly blocks: number;
  /** It is larger than any that the node has accepted. */
  readonly isLarger: boolean;
}

/** The largest range of blocks that each node of one chain accepts. */
export class NodeLimits {
  readonly #nodes: readonly Node[];
  readonly #accepted = new Map<string, AcceptedRange>();

  constructor(nodes: readonly Node[]) {
    this.#nodes = nodes;
  }

  of({ name }: Node): AcceptedRange {
    const accepted = this.#accepted.get(name) ?? new AcceptedRange();
    this.#accepted.set(name, accepted);
    return accepted;
  }

  /** That of the available node that accepts most. */
  get best(): AcceptedRange {
    const available = this.#nodes.filter((node) => node.available).map((node) => this.of(node));
    return available.toSorted((left, right) => right.blocks - left.blocks)[0] ?? new AcceptedRange();
  }

  /** Whether a node has accepted a range of its size. */
  get isTried(): boolean {
    return this.#nodes.some((node) => this.of(node).isTried);
  }
}

/** The largest range that one node accepts. */
class AcceptedRange {
  #blocks = MAX_RANGE_BLOCKS;
  /** Ranges of about this size that the node accepted since the last larger one. */
  #count = 0;

  /** The blocks of the largest range that the node accepts; before its first refusal, MAX_RANGE_BLOCKS. */
  get blocks(): number {
    return this.#blocks;
  }

  get isTried(): boolean {
    return this.#count > 0;
  }

  /** Returns the blocks of the next range of a query, at most `maxBlocks`. */
  plan(maxBlocks: number): PlannedBlocks {
    const larger = Math.min(MAX_RANGE_BLOCKS, Math.ceil(this.#blocks * GROWTH));
    if (this.#count >= RANGES_BEFORE_GROWTH && larger > this.#blocks && larger <= maxBlocks) {
      this.#count = 1;
      return { blocks: larger, isLarger: true };
    }
    return { blocks: Math.min(maxBlocks, rangeBlocksFor(this.#blocks)), isLarger: false };
  }

  /** Records that the node returned the logs of this many blocks. */
  recordAccepted(blocks: number): void {
    if (blocks > this.#blocks) {
      this.#blocks = blocks;
      this.#count = 1;
    } else if (blocks * CLOSE_ENOUGH >= this.#blocks) {
      this.#count++;
    }
  }

  /** Records that the node refused a range because of its blocks, not because of its logs. */
  recordRefused(blocks: number): void {
    if (blocks <= this.#blocks) {
      this.#blocks = Math.max(1, Math.floor(blocks / 2));
      this.#count = 0;
    }
  }
}
