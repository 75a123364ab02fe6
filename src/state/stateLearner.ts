import type { Telemetry } from "../telemetry/telemetry.ts";
import { affordable, type StateCost } from "./cost.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { StateKey } from "./stateKey.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { ValueLoader } from "./valueLoader.ts";

export interface StateLearnerOptions {
  readonly chain: string;
  readonly values: Pick<ValueStore, "get" | "head" | "used">;
  readonly follower: Pick<StateFollower, "isFollowing">;
  readonly cost: Pick<StateCost, "unitsOf" | "forLearning" | "spend">;
  readonly loader: Pick<ValueLoader, "unitsForValues" | "loadValues">;
  readonly nowMs: () => number;
  readonly telemetry: Pick<Telemetry, "log">;
}

/** Values that are learned at once. */
const MAX_VALUES = 2_000;
/** Chains that lose all values more often learn them from the reads of clients. */
const MIN_INTERVAL_MS = 10_000;
/** Learning in bulk must cost less than this share of reading the values one by one. */
const MAX_SHARE = 0.5;

/**
 * Reads the most used values again after all values were dropped: the same number of each client, within the budget of the chain.
 * Nonces are left to the reads of clients.
 */
export class StateLearner {
  readonly #options: StateLearnerOptions;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(options: StateLearnerOptions) {
    this.#options = options;
  }

  /** Called when all values were dropped. */
  onDropped(): void {
    // The follower drops the values within a change of heads, which ends first.
    setImmediate(() =>
      this.learn().catch((err: unknown) => {
        const { chain, telemetry } = this.#options;
        telemetry.log.error({ err, chain }, "known state was not learned");
      }),
    );
  }

  /** Learns at the newest block whose state can be read. */
  async learn(): Promise<void> {
    const { values, follower, cost, loader, nowMs } = this.#options;
    const block = values.head;
    if (block === undefined || !follower.isFollowing || nowMs() - this.#lastMs < MIN_INTERVAL_MS) {
      return;
    }
    const isUnknown = (key: StateKey) => key.field !== "nonce" && values.get(key, block) === undefined;
    const unitsFor = (keys: readonly StateKey[]) => loader.unitsForValues(keys, block);
    const wanted = values.used.mostUsedByClient(MAX_VALUES).filter(isUnknown);
    const keys = affordable(wanted, unitsFor, cost.forLearning);
    if (unitsFor(keys) >= MAX_SHARE * keys.length * cost.unitsOf("eth_getStorageAt")) {
      return;
    }
    this.#lastMs = nowMs();
    await loader.loadValues(keys, block, (units) => cost.spend("learning", units));
  }
}
