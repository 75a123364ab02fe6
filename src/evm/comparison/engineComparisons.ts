import type { Hash } from "../../ethereum/hex.ts";
import type { Comparison, EngineDifference } from "./compareEngines.ts";

/** A comparison executes a run again, on an engine that is some 20 times as slow. */
const MIN_INTERVAL_MS = 1_000;
/** Each run gets all of them. */
const MAX_FORWARDED_CODES = 1_000;

/** `failed`: the comparison itself failed, or reached the deadline of a run. */
export type ComparisonOutcome = Comparison["outcome"] | "failed";

export interface EngineComparisonsOptions {
  /** The share of runs that are compared, from 0 to 1. */
  readonly share: number;
  readonly onCompared?: (outcome: ComparisonOutcome) => void;
  readonly onDifference?: (difference: EngineDifference) => void;
  readonly random?: () => number;
  readonly nowMs?: () => number;
}

/** Decides which runs are compared, and remembers the recipients' codes on which the engines differ. A node executes these until a restart. */
export class EngineComparisons {
  readonly #options: EngineComparisonsOptions;
  readonly #forwarded = new Set<Hash>();
  #isRunning = false;
  #nextMs = 0;

  constructor(options: EngineComparisonsOptions) {
    this.#options = options;
  }

  /** Hashes of the codes that must not run here, oldest first. */
  get forwardedCodes(): readonly Hash[] {
    return [...this.#forwarded];
  }

  /** Compares every N-th run, one at a time, and no more than one in a second. Never throws. */
  async sample(compare: () => Promise<Comparison>): Promise<void> {
    const { share, random = Math.random, nowMs = () => performance.now() } = this.#options;
    if (this.#isRunning || nowMs() < this.#nextMs || random() >= share) {
      return;
    }
    this.#isRunning = true;
    this.#nextMs = nowMs() + MIN_INTERVAL_MS;
    this.#record(await compare().catch(() => undefined));
    this.#isRunning = false;
  }

  #record(comparison: Comparison | undefined): void {
    const { onCompared, onDifference } = this.#options;
    if (comparison?.outcome === "different") {
      for (const code of comparison.difference.codes) {
        this.#forward(code);
      }
      onDifference?.(comparison.difference);
    }
    onCompared?.(comparison?.outcome ?? "failed");
  }

  #forward(code: Hash): void {
    this.#forwarded.add(code);
    const [oldest] = this.#forwarded;
    if (this.#forwarded.size > MAX_FORWARDED_CODES && oldest !== undefined) {
      this.#forwarded.delete(oldest);
    }
  }
}
