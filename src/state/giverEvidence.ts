import { z } from "zod";
import type { BlockId } from "../core/heads.ts";
import { keyName, type StateKey } from "./stateKey.ts";

/** The agreement with nodes that a giver of write sets needs before its values answer reads. */
export interface ProbationLimits {
  /** Blocks at which a value agreed. On slow chains, fewer blocks are enough: those of PROBATION_MS. */
  readonly blocks: number;
  /** Values that agreed, each counted once a block. */
  readonly values: number;
}

const count = z.number().int().nonnegative();

/** How far a probation is. `ageMs`: since the first agreement. */
export const probationProgress = z.object({ blocks: count, values: count, ageMs: z.number().nonnegative() });

export type ProbationProgress = Readonly<z.infer<typeof probationProgress>>;

const NOTHING: ProbationProgress = { blocks: 0, values: 0, ageMs: 0 };

/** After this time since the first agreement, MIN_BLOCKS are enough. 32 blocks of 12 s take 6.4 minutes. */
const PROBATION_MS = 64_000;
const MIN_BLOCKS = 8;
/** A giver of a wrong value is not asked for this time. */
export const SUSPENSION_MS = 3_600_000;

/** What this process knows of a probation. */
const nothingReached = () => ({
  firstMs: Number.POSITIVE_INFINITY,
  blocks: 0,
  values: 0,
  /** The part of `values` that this process has compared. The rest is of a process before it. */
  compared: 0,
  /** What the other replicas have compared. */
  others: NOTHING,
  newestBlock: -1n,
  /** The values that agreed at `newestBlock`. */
  agreed: new Set<string>(),
});

/**
 * The evidence for the traces of one node. It counts how often its values agreed with those of nodes, until that is enough. A wrong
 * value suspends the node's traces, and the count begins again.
 */
export class GiverEvidence {
  readonly #limits: ProbationLimits;
  readonly #nowMs: () => number;
  #suspendedUntilMs = Number.NEGATIVE_INFINITY;
  #reached = nothingReached();

  constructor(limits: ProbationLimits, nowMs: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  /** Whether its values may answer reads. If not, it is on probation. */
  get isTrusted(): boolean {
    return this.blocksLeft === 0 && this.valuesLeft === 0;
  }

  /** Whether it is not asked for some time, because a value was wrong. */
  get isSuspended(): boolean {
    return this.#nowMs() < this.#suspendedUntilMs;
  }

  /** Blocks at which a value must still agree. */
  get blocksLeft(): number {
    const { blocks } = this.#limits;
    const { progress } = this;
    const isLong = progress.ageMs >= PROBATION_MS;
    return Math.max(0, (isLong ? Math.min(blocks, MIN_BLOCKS) : blocks) - progress.blocks);
  }

  /** Values that must still agree. */
  get valuesLeft(): number {
    return Math.max(0, this.#limits.values - this.progress.values);
  }

  /** Called when a node returned the value that write sets of the giver had predicted for this block. */
  recordAgreement({ field, address, slot }: StateKey, { number }: BlockId): void {
    if (this.isTrusted || number < this.#reached.newestBlock) {
      return;
    }
    this.#beginBlock(number);
    const { agreed } = this.#reached;
    const name = keyName({ field, address, slot });
    if (!agreed.has(name)) {
      agreed.add(name);
      this.#count(1);
    }
  }

  /** Called when a header proved a write set of the giver: all values of that block agreed. */
  recordProof({ number }: BlockId): void {
    if (!this.isTrusted && this.#beginBlock(number)) {
      this.#count(Math.ceil(this.#limits.values / Math.max(1, this.#limits.blocks)));
    }
  }

  /** Returns false if it is no later block. */
  #beginBlock(number: bigint): boolean {
    const reached = this.#reached;
    if (number <= reached.newestBlock) {
      return false;
    }
    reached.newestBlock = number;
    reached.firstMs = Math.min(reached.firstMs, this.#nowMs());
    reached.blocks++;
    reached.agreed.clear();
    return true;
  }

  #count(values: number): void {
    this.#reached.values += values;
    this.#reached.compared += values;
  }

  /** What is reached so far. What a process before this one has compared may be of a replica that counts too. */
  get progress(): ProbationProgress {
    const { blocks, values, compared, others } = this.#reached;
    return {
      blocks: Math.max(blocks, others.blocks),
      values: Math.max(values, compared + others.values),
      ageMs: Math.max(this.#ageMs, others.ageMs),
    };
  }

  /** What this process has reached without other replicas. */
  get ownProgress(): ProbationProgress {
    const { blocks, compared } = this.#reached;
    return { blocks, values: compared, ageMs: this.#ageMs };
  }

  get #ageMs(): number {
    return Math.max(0, this.#nowMs() - this.#reached.firstMs);
  }

  /** Called with the `ownProgress` of each other replica that is on probation with the same node. */
  countOthers(others: readonly ProbationProgress[]): void {
    if (this.isSuspended || this.isTrusted) {
      return;
    }
    this.#reached.others = others.reduce(
      (sum, { blocks, values, ageMs }) => ({
        blocks: Math.max(sum.blocks, blocks),
        values: sum.values + values,
        ageMs: Math.max(sum.ageMs, ageMs),
      }),
      NOTHING,
    );
    if (this.isTrusted) {
      // A replica that ends takes nothing back.
      this.resume(this.progress);
    }
  }

  /** Goes on with what was reached before a restart, unless more is reached or a value was wrong since. */
  resume({ blocks, values, ageMs }: ProbationProgress): void {
    if (this.isSuspended || blocks === 0) {
      return;
    }
    const reached = this.#reached;
    reached.blocks = Math.max(reached.blocks, blocks);
    reached.values = Math.max(reached.values, values);
    reached.firstMs = Math.min(reached.firstMs, this.#nowMs() - ageMs);
  }

  /** Called when a value of its write sets was wrong. */
  suspend(): void {
    this.#suspendedUntilMs = this.#nowMs() + SUSPENSION_MS;
    this.#reached = nothingReached();
  }
}

/** Compares how much two givers still need, for a sort: a trusted one is first. */
export const byProgress = (one: GiverEvidence, other: GiverEvidence): number =>
  one.blocksLeft - other.blocksLeft || one.valuesLeft - other.valuesLeft;
