import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import type { NodeValue } from "./awaitedBlocks.ts";
import type { GiverEvidence } from "./giverEvidence.ts";
import type { StateDifference } from "./originComparison.ts";
import { keyName, type StateKey } from "./stateKey.ts";
import type { AddResult, ValueStore } from "./store/valueStore.ts";
import { codeDigits } from "./store/writtenValues.ts";
import type { WriteSet, WriteSetSource } from "./writeSet.ts";

/** A source on probation is asked only if no other source had the write sets of this number of blocks, and of this time. */
const TRUSTED_BLOCKS = 8n;
const TRUSTED_MS = 16_000;
const MAX_CONTESTED = 10_000;
/** The origins may agree again after this time. */
const CONTESTED_MS = 600_000;

/** Undefined: the write set is proven. */
const evidenceOf = (source: WriteSetSource, writeSet: WriteSet): GiverEvidence | undefined =>
  source.evidenceOf === undefined ? source.evidence : source.evidenceOf(writeSet);

const isOnProbation = (evidence: GiverEvidence | undefined): boolean => evidence?.isTrusted === false;

/** A key whose value is not known, because origins disagree on it or are asked about it now. */
interface Contest {
  readonly block: BlockId;
  /** Called when a proof makes the value known again: with the value at the contested block, if the proof shows it. */
  onProven(value: string | undefined): void;
}

/** The giver of the write set of one block. */
export interface BlockGiver {
  readonly node: string | undefined;
  readonly evidence: GiverEvidence | undefined;
}

/**
 * The known values with the givers of the write sets that carried them to the newest block.
 * Values of givers on probation are compared with those of nodes, and answer no read. They are not mixed with values of other givers.
 */
export class SourcedValues {
  readonly #values: ValueStore;
  /** The givers of the write sets that were applied since the values began, by node. Without one, a source needs no trust. */
  readonly #carriers = new Map<string | undefined, GiverEvidence | undefined>();
  /** The givers of the newest write sets, by the number of the block. */
  readonly #givers = new Map<bigint, BlockGiver>();
  /** By the name of the key. Its value becomes known by a proof alone. */
  readonly #contested: LRUCache<string, Contest>;
  readonly #nowMs: () => number;
  #newestTrusted: { readonly number: bigint; readonly atMs: number } | undefined;

  constructor(values: ValueStore, nowMs: () => number = () => performance.now()) {
    this.#values = values;
    this.#nowMs = nowMs;
    this.#contested = new LRUCache({ max: MAX_CONTESTED, ttl: CONTESTED_MS, ttlResolution: 0, perf: { now: nowMs } });
  }

  /** Whether to ask a source for the write set of this block. */
  isUsable(source: WriteSetSource, { number }: BlockId): boolean {
    const trusted = this.#newestTrusted;
    const isReplaced =
      trusted !== undefined && (number - trusted.number <= TRUSTED_BLOCKS || this.#nowMs() - trusted.atMs < TRUSTED_MS);
    return source.isSuspended !== true && !(isReplaced && isOnProbation(source.evidence));
  }

  /** Whether the known values stay after this write set. */
  canContinue(source: WriteSetSource, writeSet: WriteSet): boolean {
    // A probation also ends by time.
    this.#updateTrusted();
    return this.#carriers.size === 0 || isOnProbation(evidenceOf(source, writeSet)) !== this.#values.isTrusted;
  }

  /** Whether a write set was applied since the values began, on the word of this node alone. */
  isCarriedBy(node: string): boolean {
    return this.#carriers.has(node);
  }

  /** Returns the nodes on whose word alone the write sets of these blocks are. */
  carriersOf(above: bigint, upTo: bigint): readonly string[] {
    const nodes = new Set<string>();
    for (const [number, { node }] of this.#givers) {
      if (number > above && number <= upTo && node !== undefined) {
        nodes.add(node);
      }
    }
    return [...nodes];
  }

  /** Forgets all values, and makes one block readable. */
  begin(block: BlockId): void {
    this.#forgetGivers();
    this.#values.begin(block);
  }

  /** Returns the nodes on whose word alone write sets carried the values. Undefined among them: a source that needs no trust. */
  get carriers(): readonly (string | undefined)[] {
    return [...this.#carriers.keys()];
  }

  /** Adds givers that carried the values to the first readable block before a restart. */
  addCarriers(carriers: readonly BlockGiver[]): void {
    for (const { node, evidence } of carriers) {
      this.#carriers.set(node, evidence);
    }
    this.#updateTrusted();
  }

  /** Forgets all values. No block is readable then. */
  clear(): void {
    this.#forgetGivers();
    this.#values.clear();
  }

  /** Called when this source had the write set of a block. */
  noteBlock(source: WriteSetSource, writeSet: WriteSet): void {
    if (!isOnProbation(evidenceOf(source, writeSet))) {
      this.#newestTrusted = { number: writeSet.block.number, atMs: this.#nowMs() };
    }
  }

  /** See ValueStore. */
  apply(source: WriteSetSource, writeSet: WriteSet): Generator<void, boolean> {
    const { node, block } = writeSet;
    const evidence = evidenceOf(source, writeSet);
    this.#carriers.set(node, evidence);
    this.#givers.set(block.number, { node, evidence });
    for (const number of [...this.#givers.keys()].slice(0, -this.#values.maxReadable)) {
      this.#givers.delete(number);
    }
    this.#updateTrusted();
    return this.#values.apply(writeSet);
  }

  /** Adds a value that a node returned for this block's hash. Returns the difference if another value is known. */
  add(added: NodeValue, block: BlockId): StateDifference | undefined {
    const values = this.#values;
    const { key, value, node, isProven } = added;
    const contest = this.#contested.size > 0 ? this.#contested.get(keyName(key)) : undefined;
    if (contest !== undefined && (isProven !== true || block.number < contest.block.number)) {
      return undefined;
    }
    const result = this.#add(added, block);
    if (contest !== undefined && result !== "refused") {
      this.settle(key);
      contest.onProven(typeof value === "string" && this.#isSame(key, contest.block, block) ? value : undefined);
    }
    if (result === "different") {
      return {
        key,
        block,
        known: values.getUntrusted(key, block) ?? "",
        actual: typeof value === "string" ? value : codeDigits(value),
        isActualProven: isProven === true,
        node,
      };
    }
    if (result === "agreed" && !values.isTrusted) {
      this.#givers.get(block.number)?.evidence?.recordAgreement(key, block);
      this.#updateTrusted();
    }
    return undefined;
  }

  #add({ key, value, node, isProven }: NodeValue, block: BlockId): AddResult {
    const values = this.#values;
    if (typeof value !== "string") {
      return values.addCode(key, block, value, node);
    }
    return isProven === true ? values.addProven(key, block, value) : values.add(key, block, value, node);
  }

  /** Whether it is proven that a key has the same value after both blocks. */
  #isSame(key: StateKey, since: BlockId, at: BlockId): boolean {
    const values = this.#values;
    return since.hash === at.hash || (values.isProvenSince(since, at) && !values.isWrittenSince(key, since, at));
  }

  /** Forgets a value, and learns it from no node until `settle`, or until a proof of this block or of a later one. */
  contest(key: StateKey, block: BlockId, onProven: Contest["onProven"]): void {
    this.#contested.set(keyName(key), { block, onProven });
    this.#values.forgetValue(key, block);
  }

  settle(key: StateKey): void {
    this.#contested.delete(keyName(key));
  }

  #updateTrusted(): void {
    this.#values.isTrusted = ![...this.#carriers.values()].some(isOnProbation);
  }

  #forgetGivers(): void {
    this.#carriers.clear();
    this.#givers.clear();
  }
}
