import type { BlockId } from "../core/heads.ts";
import type { StateFetch } from "../core/stateReader.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { BlockValues } from "./blockValues.ts";
import { BulkReader } from "./bulkReader.ts";
import type { DifferenceHandler } from "./differenceHandler.ts";
import type { OriginComparison } from "./originComparison.ts";
import { StateAudit } from "./stateAudit.ts";
import type { StateCost } from "./stateCost.ts";
import type { StateDifference } from "./stateDifference.ts";
import type { StateFollower } from "./stateFollower.ts";
import type { StateKey } from "./stateKey.ts";
import { StateLearner } from "./stateLearner.ts";
import { StateSamples } from "./stateSamples.ts";

export interface StateJudgeOptions {
  readonly chain: string;
  readonly values: BlockValues;
  readonly follower: StateFollower;
  readonly cost: StateCost;
  readonly fetch: StateFetch;
  readonly comparison: OriginComparison;
  readonly differences: Pick<DifferenceHandler, "handle">;
  readonly nowMs: () => number;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

const AUDIT_INTERVAL_MS = 30_000;

/** Compares the known state of one chain with its nodes, and learns the most used values again after they were dropped. */
export class StateJudge {
  readonly #audit: StateAudit;
  readonly #samples: StateSamples;
  readonly #learner: StateLearner;
  readonly #timer: NodeJS.Timeout;
  readonly #onError: (err: unknown) => void;

  constructor(options: StateJudgeOptions) {
    const { chain, values, follower, cost, fetch, comparison, differences, nowMs, telemetry } = options;
    const reader = new BulkReader({ fetch, unitsOf: cost.unitsOf, nowMs });
    const events = (kind: "audit" | "sample") => ({
      onCompared: (count: number) => telemetry.metrics.stateCompared.inc({ chain, kind }, count),
      onDifference: (difference: StateDifference) => differences.handle(difference, kind),
    });
    const shared = { values, comparison, cost };
    this.#audit = new StateAudit({ ...shared, random: Math.random, ...events("audit") });
    this.#samples = new StateSamples({ ...shared, ...events("sample") });
    this.#learner = new StateLearner({ values, follower, cost, reader, nowMs });
    this.#timer = setInterval(() => this.#audit.run().catch(this.#onError), AUDIT_INTERVAL_MS).unref();
    this.#onError = (err) => telemetry.log.error({ err, chain }, "known state was not compared or learned");
  }

  /** Called with each answer that a node was not asked for. */
  onLocalAnswer(key: StateKey, block: BlockId, body: Uint8Array): void {
    this.#samples.consider(key, block, body)?.catch(this.#onError);
  }

  /** Called when all values were dropped. */
  onDropped(): void {
    // The follower drops the values within a change of heads, which ends first.
    setImmediate(() => this.#learner.learn().catch(this.#onError));
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
