import type { BlockId } from "../core/heads.ts";
import type { GiverEvidence } from "./giverEvidence.ts";
import { runSliced } from "./runSliced.ts";
import { keyName } from "./stateKey.ts";
import type { TableKey } from "./store/keyEncoder.ts";
import { codeDigits, writtenValues } from "./store/writtenValues.ts";
import type { WriteSet, WriteSetFailure } from "./writeSet.ts";

export interface PeerComparisonOptions {
  readonly nowMs: () => number;
  /** Returns the nodes on probation that may be asked, the one whose probation is furthest first. */
  candidates(): readonly (readonly [name: string, evidence: GiverEvidence])[];
  /** Reads the write set of one node. Never rejects. */
  readFrom(node: string, block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure>;
}

/** After a write set that was late or did not agree, a node is not asked for this time. */
const PAUSE_MS = 60_000;
const MAX_READ_MS = 10_000;

/** Returns the values that a write set names, by key. Yields after each. */
const valuesOf = function* (writeSet: WriteSet): Generator<void, Map<string, { key: TableKey; value: string }>> {
  const values = new Map<string, { key: TableKey; value: string }>();
  for (const { key, value } of writtenValues(writeSet, codeDigits)) {
    if (value !== undefined) {
      values.set(keyName(key), { key, value });
    }
    yield;
  }
  return values;
};

/**
 * Lets nodes earn the trust in their traces while a trusted node has the write sets. Such a node is asked for the same block.
 * Its values count if it has all values of the trusted write set.
 */
export class PeerComparison {
  readonly #options: PeerComparisonOptions;
  readonly #pausedUntilMs = new Map<string, number>();
  #isRunning = false;

  constructor(options: PeerComparisonOptions) {
    this.#options = options;
  }

  /** Compares one node with a trusted write set, unless a comparison is running. Never rejects. */
  async compare(trusted: WriteSet): Promise<void> {
    const { candidates, nowMs } = this.#options;
    const peer = candidates().find(([name]) => nowMs() >= (this.#pausedUntilMs.get(name) ?? 0));
    if (peer === undefined || this.#isRunning) {
      return;
    }
    const [name, evidence] = peer;
    this.#isRunning = true;
    const agrees = await this.#agrees(name, evidence, trusted).catch(() => false);
    this.#isRunning = false;
    if (!agrees) {
      this.#pausedUntilMs.set(name, nowMs() + PAUSE_MS);
    }
  }

  async #agrees(name: string, evidence: GiverEvidence, trusted: WriteSet): Promise<boolean> {
    const { block } = trusted;
    const expected = await runSliced(valuesOf(trusted));
    // Nothing could agree, and a read costs units.
    if (expected.size === 0) {
      return true;
    }
    const read = await this.#options.readFrom(name, block, AbortSignal.timeout(MAX_READ_MS));
    if (typeof read === "string" || read.node !== name || read.block.hash !== block.hash) {
      return false;
    }
    const values = await runSliced(valuesOf(read));
    if ([...expected].some(([key, { value }]) => values.get(key)?.value !== value)) {
      return false;
    }
    for (const { key } of expected.values()) {
      if (key.field !== "storage") {
        evidence.recordAgreement({ ...key, field: key.field }, block);
      }
    }
    return true;
  }
}
