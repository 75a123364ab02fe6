import { type BlockId, canonicalHeader, type HeaderFields } from "../../core/heads.ts";
import { timeoutSignal } from "../../core/lazySignal.ts";
import type { ChainForks } from "../../ethereum/rules.ts";
import type { Upstreams } from "../../heads/upstreams.ts";
import { parseJson } from "../../json/jsonBytes.ts";
import type { Call } from "../../jsonrpc/call.ts";
import type { Audit } from "../audit.ts";
import type { StateCost } from "../cost.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { StateChain, StateParts } from "../stateParts.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { ValueLoader } from "../valueLoader.ts";
import type { WriteSetWaits } from "../writeSetWaits.ts";
import { CallCache } from "./callCache.ts";
import { CallChecks } from "./callChecks.ts";
import { CallLearner } from "./callLearner.ts";
import type { BlockCall, RunCall } from "./callRun.ts";
import { CallRunner, type CallRunnerOptions } from "./callRunner.ts";
import { createWasSeen } from "./callSights.ts";
import { CallTable } from "./callTable.ts";
import { NodeDefaultsCache } from "./nodeDefaults.ts";
import type { StoredCall } from "./storedCall.ts";

export interface ChainCallCacheOptions extends StateParts {
  readonly execution: NonNullable<StateChain["execution"]>;
  /** The rules of the chain. */
  readonly forks: () => ChainForks | undefined;
  readonly values: ValueStore;
  readonly follower: StateFollower;
  readonly cost: StateCost;
  readonly loader: ValueLoader;
  readonly audit: Audit;
  readonly waits: WriteSetWaits;
  readonly maxBytes: number;
  /** Called when all answers are dropped. */
  onDropped(): void;
}

const PROBE_TIMEOUT_MS = 5_000;

/** Returns the headers and hashes of canonical blocks. */
const createBlockLookups = ({ upstreams: { heads }, forks, ownHashes }: ChainCallCacheOptions) => {
  return {
    // The hash of a header in the ring was not computed when it was added.
    headerOf: (block: BlockId): HeaderFields | undefined => {
      const header = canonicalHeader(heads.current(), block);
      return header !== undefined && ownHashes.has(header) ? header : undefined;
    },
    isCertain: (header: HeaderFields): boolean => ownHashes.hasComputed(header) && forks()?.isShown !== true,
  };
};

type BlockLookups = ReturnType<typeof createBlockLookups>;

const createRun =
  ({ execution, signal }: ChainCallCacheOptions, { headerOf }: BlockLookups): RunCall =>
  async ({ block, ...call }) => {
    const header = headerOf(block);
    if (header === undefined) {
      throw new Error(`block ${block.hash} is not canonical`);
    }
    return execution.runCall(call, header, signal);
  };

/** Returns the function that sends calls to one node. */
const createCallNode =
  ({ nodes }: Upstreams) =>
  async (name: string, calls: readonly Call[]): Promise<readonly unknown[]> => {
    const node = nodes.find((each) => each.name === name);
    const signal = timeoutSignal(PROBE_TIMEOUT_MS);
    const outcomes = await node?.batch(calls, { signal, deadlineMs: performance.now() + PROBE_TIMEOUT_MS });
    return (outcomes ?? []).map((outcome) =>
      "body" in outcome && outcome.body instanceof Uint8Array ? parseJson(outcome.body) : outcome,
    );
  };

/** Returns the function that removes a node's response to a call from the cache. */
const createForget =
  ({ upstreams, pipeline }: ChainCallCacheOptions) =>
  ({ key, block }: BlockCall): void => {
    const heads = upstreams.heads.current();
    if (heads !== undefined) {
      pipeline.forget({ canonicalParams: key, block }, heads);
    }
  };

/** The answers to calls of one chain. */
export interface ChainCallCache {
  readonly callCache: CallCache;
  /** Lists the calls that can be executed again. */
  calls(): Iterator<StoredCall | undefined>;
  /** Adds calls of an earlier process or chain. Never rejects. */
  restore(calls: readonly StoredCall[]): Promise<void>;
  /** Ends the learning. */
  close(): void;
}

/** Creates the answers to calls of one chain. */
export const createCallCache = (options: ChainCallCacheOptions): ChainCallCache => {
  const { config, upstreams, values, follower, cost, loader, audit, waits } = options;
  const { telemetry } = options.shared;
  const lookups = createBlockLookups(options);
  const { headerOf } = lookups;
  const forget = createForget(options);
  const shared = { chain: config.name, values, follower, cost, telemetry };
  const table = new CallTable({ ...shared, maxBytes: options.maxBytes, onCleared: options.onDropped });
  const checks = new CallChecks({ ...shared, table, audit, forget });
  const callNode = createCallNode(upstreams);
  const defaults = new NodeDefaultsCache({ callNode, headerOf, cost, onOutdated: () => table.clear() });
  const run = createRun(options, lookups);
  const stateAt: CallRunnerOptions["stateAt"] = (...at) => options.execution.knownStateAt(...at);
  const runner = new CallRunner({ ...shared, ...lookups, run, stateAt, defaults, checks, forget });
  const blockTimeMs = () => upstreams.heads.blockTimeMs;
  const learner = new CallLearner({ ...shared, loader, table, defaults, runner, blockTimeMs });
  const { waitMs } = config.state;
  const { sharedValues } = options.pipeline;
  const wasSeen = sharedValues && createWasSeen(sharedValues);
  const callCache = new CallCache({ ...shared, table, learner, loader, runner, checks, waits, waitMs, wasSeen });
  return {
    callCache,
    close: () => learner.close(),
    calls: () => table.calls(),
    restore: async (calls) => {
      const latest = upstreams.heads.current()?.latest;
      const nodes = new Set(calls.map(({ node }) => node));
      // Without the environment of its node, no call is executed.
      await Promise.all([...nodes].map((node) => latest && defaults.get(node, latest)));
      // A full table drops the first ones.
      for (const call of calls.toReversed()) {
        table.restore(call);
      }
    },
  };
};
