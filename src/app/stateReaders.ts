import { createAgreedFetch } from "../cache/agreedFetch.ts";
import { Disagreements } from "../cache/disagreements.ts";
import { createBatchFetch } from "../nodes/fetchStateBatch.ts";
import type { HeldAnswers } from "../state/calls/storedAnswers.ts";
import { ExecutionReads } from "../state/executionReads.ts";
import { ProofReader } from "../state/fetch/proofReader.ts";
import { StateFetcher } from "../state/fetch/stateFetcher.ts";
import { comparedNodes, OriginComparison } from "../state/originComparison.ts";
import type { SourceTrust } from "../state/sourceTrust.ts";
import { StateChecks } from "../state/stateChecks.ts";
import type { StateCost } from "../state/stateCost.ts";
import { StateDifferences } from "../state/stateDifferences.ts";
import type { StateFollower } from "../state/stateFollower.ts";
import { StateLearner } from "../state/stateLearner.ts";
import { StateReads } from "../state/stateReads.ts";
import type { ValueStore } from "../state/store/valueStore.ts";
import { ValueLoader } from "../state/valueLoader.ts";
import { WriteSetWaits } from "../state/writeSetWaits.ts";
import type { ChainSnapshot } from "./chainSnapshot.ts";
import type { ChainViews } from "./chainViews.ts";
import { type ChainCallCache, type ChainCallCacheOptions, createCallCache } from "./createCallCache.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";

/** The values of one chain, with their givers and costs. The chain that replaces it can go on with them. */
export interface FollowedState {
  readonly cost: StateCost;
  readonly trust: SourceTrust;
  readonly values: ValueStore;
  /** Answers to calls of an earlier process or chain, until they are added to those of this one. */
  readonly held: HeldAnswers;
}

interface StateReadersOptions
  extends FollowedState,
    Pick<ChainCallCacheOptions, "config" | "upstreams" | "signal" | "telemetry"> {
  readonly pipeline: Pick<ReadPipeline, "ownReads" | "forget">;
  readonly follower: StateFollower;
  /** Undefined without a data folder. */
  readonly snapshot: ChainSnapshot | undefined;
  readonly views: Pick<ChainViews, "execution" | "forks">;
  /** The room for answers to calls. 0: none is kept. */
  readonly answerBytes: number;
  /** Suspends a node whose value other origins contradict. */
  recordWrongValue(node: string): void;
}

/** What answers from the followed state of one chain, learns more of it, and compares it with nodes. */
export interface StateReaders {
  readonly reads: StateReads;
  readonly executionReads: ExecutionReads;
  /** Undefined if calls are not answered from earlier answers. */
  readonly calls: ChainCallCache | undefined;
  readonly learner: StateLearner;
  readonly differences: StateDifferences;
  /** Ends what runs by itself. */
  close(): void;
}

const nowMs = (): number => performance.now();

/** Creates what reads the followed state of one chain. */
export const createStateReaders = (options: StateReadersOptions): StateReaders => {
  const { config, upstreams, pipeline, signal, telemetry, views, follower, snapshot, answerBytes } = options;
  const { recordWrongValue, cost, trust, values } = options;
  const chain = config.name;
  const { heads } = upstreams;
  const { timeoutMs } = config.upstream;
  const fetch = createAgreedFetch({
    ...{ nodes: upstreams.nodes, agree: config.reads.agree, timeoutMs },
    fetchFrom: (nodes, forMs) => createBatchFetch({ nodes, heads }, forMs),
    disagreements: new Disagreements(chain, telemetry),
  });
  const comparison = new OriginComparison({
    nodes: comparedNodes(upstreams, timeoutMs, cost.unitsOf),
    onSpent: (units) => cost.spend("audit", units),
  });
  const differences = new StateDifferences({
    ...{ chain, comparison, trust, values, follower, telemetry, snapshot },
    recordWrongValue,
  });
  const checked = { chain, values, cost, telemetry };
  const checks = new StateChecks({ ...checked, comparison, differences });
  const reader = new StateFetcher(fetch, cost.unitsOf);
  const proofs = new ProofReader({
    ...{ reads: pipeline.ownReads, heads, unitsOf: cost.unitsOf, timeoutMs, signal },
    isAllowed: config.state.prove !== false && config.verify === "full",
  });
  const loader = new ValueLoader({ values, follower, reader, unitsOf: cost.unitsOf, proofs });
  const learner = new StateLearner({ ...checked, follower, loader, nowMs });
  const { execution } = views;
  const { waitMs } = config.state;
  const waits = new WriteSetWaits({ chain, telemetry, waitMs, blockTimeMs: () => heads.blockTimeMs });
  const calls =
    execution !== undefined && answerBytes > 0
      ? createCallCache({
          ...{ ...options, loader, comparison, differences, execution, waits, maxBytes: answerBytes },
          forks: () => views.forks,
          // They were wrong, or are not the node's any more. So are those of the snapshot.
          onDropped: () => snapshot?.replace(),
        })
      : undefined;
  const shared = { ...checked, follower, waits };
  return {
    reads: new StateReads({ ...shared, checks, proofs }),
    executionReads: new ExecutionReads({ ...shared, heads }),
    ...{ calls, learner, differences },
    close: () => {
      checks.close();
      calls?.close();
    },
  };
};
