import { Audit } from "./audit.ts";
import type { Followed } from "./blockState.ts";
import { type ChainCallCache, createCallCache } from "./calls/createCallCache.ts";
import type { StoredCall } from "./calls/storedCall.ts";
import type { StateCost } from "./cost.ts";
import { createNodeReaders } from "./fetch/nodeReaders.ts";
import { ProofReader } from "./fetch/proofReader.ts";
import type { SourceGuard } from "./sources/sourceGuard.ts";
import type { StateFollower } from "./stateFollower.ts";
import { StateLearner } from "./stateLearner.ts";
import type { StateChain, StateParts } from "./stateParts.ts";
import { StateReads } from "./stateReads.ts";
import type { ValueStore } from "./store/valueStore.ts";
import { ValueLoader } from "./valueLoader.ts";
import { WriteSetWaits } from "./writeSetWaits.ts";

/** The values of one chain, with the guard of their sources and costs. The chain that replaces it can go on with them. */
export interface FollowedState {
  readonly cost: StateCost;
  readonly guard: SourceGuard;
  readonly values: ValueStore;
  /** Calls of an earlier process or chain, until they are added to those of this one. */
  readonly calls: StoredCall[];
}

interface StateReadersOptions extends FollowedState, StateParts {
  readonly follower: StateFollower;
  readonly served: Pick<StateChain, "execution" | "forks">;
  /** The room for answers to calls. 0: none is kept. */
  readonly answerBytes: number;
  /** Prefers other nodes for a time: a value of this one is wrong. */
  recordWrongValue(node: string): void;
  /** Called when all answers to calls are dropped. */
  onAnswersDropped(): void;
}

/** What answers from the followed state of one chain, learns more of it, and compares it with nodes. */
export interface StateReaders {
  readonly reads: StateReads;
  /** What executions read. */
  readonly followed: Followed;
  /** Undefined if calls are not answered from earlier answers. */
  readonly calls: ChainCallCache | undefined;
  readonly learner: StateLearner;
  readonly audit: Audit;
  /** Ends what runs by itself. */
  close(): void;
}

const nowMs = (): number => performance.now();

/** Creates what reads the followed state of one chain. */
export const createStateReaders = (options: StateReadersOptions): StateReaders => {
  const { config, upstreams, pipeline, signal, served, follower, answerBytes } = options;
  const { telemetry } = options.shared;
  const { recordWrongValue, onAnswersDropped, cost, guard, values } = options;
  const chain = config.name;
  const { heads } = upstreams;
  const { timeoutMs } = config.upstream;
  const checked = { chain, values, cost, telemetry };
  const nodes = createNodeReaders(upstreams, timeoutMs, cost.unitsOf);
  const audit = new Audit({ ...checked, follower, guard, nodes, recordWrongValue });
  const reader = pipeline.createFetcher(timeoutMs);
  const proofs = new ProofReader({
    ...{ reads: pipeline.ownReads, heads, unitsOf: cost.unitsOf, timeoutMs, signal },
    isAllowed: config.state.prove !== false && config.verify === "full",
  });
  const loader = new ValueLoader({ values, follower, reader, unitsOf: cost.unitsOf, proofs });
  const learner = new StateLearner({ ...checked, follower, loader, nowMs });
  const { execution } = served;
  const { waitMs } = config.state;
  const waits = new WriteSetWaits({ chain, telemetry, waitMs, blockTimeMs: () => heads.blockTimeMs });
  const calls =
    execution !== undefined && answerBytes > 0
      ? createCallCache({
          ...{ ...options, loader, audit, execution, waits, maxBytes: answerBytes },
          forks: () => served.forks,
          onDropped: onAnswersDropped,
        })
      : undefined;
  const shared = { ...checked, follower, waits };
  return {
    reads: new StateReads({ ...shared, audit, proofs }),
    followed: { follower, cost, waits },
    ...{ calls, learner, audit },
    close: () => calls?.close(),
  };
};
