import type { ChainConfig } from "../config/schema.ts";
import { type BlockId, type HeaderFields, isCanonicalIn } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import { parseJson } from "../json/jsonBytes.ts";
import type { Call } from "../jsonrpc/call.ts";
import { parseBaseBlock } from "../simulation/simulatedHeader.ts";
import type { Audit } from "../state/audit.ts";
import { CallCache } from "../state/calls/callCache.ts";
import { CallChecks } from "../state/calls/callChecks.ts";
import { CallLearner } from "../state/calls/callLearner.ts";
import type { BlockCall, RunCall } from "../state/calls/callRun.ts";
import { CallRunner } from "../state/calls/callRunner.ts";
import { CallTable } from "../state/calls/callTable.ts";
import { NodeDefaultsCache } from "../state/calls/nodeDefaults.ts";
import type { StoredCall } from "../state/calls/storedCall.ts";
import type { StateCost } from "../state/cost.ts";
import type { StateFollower } from "../state/stateFollower.ts";
import type { ValueStore } from "../state/store/valueStore.ts";
import type { ValueLoader } from "../state/valueLoader.ts";
import type { WriteSetWaits } from "../state/writeSetWaits.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";
import type { ChainExecution } from "./chainExecution.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";

export interface ChainCallCacheOptions {
  readonly config: ChainConfig;
  readonly upstreams: Upstreams;
  /** Of the headers in the block ring. */
  readonly ownHashes: OwnHashes;
  readonly pipeline: Pick<ReadPipeline, "forget">;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
  readonly execution: ChainExecution;
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
  const canonical = (block: BlockId) => {
    const current = heads.current();
    return isCanonicalIn(current, block) ? current : undefined;
  };
  return {
    // The hash of a header in the ring was not computed when it was added.
    headerOf: (block: BlockId): HeaderFields | undefined => {
      const header = canonical(block)?.header(block.number);
      return header !== undefined && ownHashes.has(header) ? header : undefined;
    },
    isCertain: (header: HeaderFields): boolean => ownHashes.hasComputed(header) && forks()?.isShown !== true,
    ancestorHash: (number: bigint, block: BlockId): Hash | undefined => canonical(block)?.at(number)?.hash,
  };
};

type BlockLookups = ReturnType<typeof createBlockLookups>;

const createRun =
  ({ execution, signal }: ChainCallCacheOptions, { headerOf }: BlockLookups): RunCall =>
  async ({ method, paramsText, block, source, gasCap }) => {
    const header = headerOf(block);
    if (header === undefined) {
      throw new Error(`block ${block.hash} is not canonical`);
    }
    const kind = method === "eth_call" ? "repeatedCall" : "estimateGas";
    return execution.simulator.trace({
      ...{ kind, paramsText, gasCap, signal },
      base: { block: parseBaseBlock(header), source },
    });
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
  const { config, upstreams, values, follower, cost, loader, audit, waits, telemetry } = options;
  const lookups = createBlockLookups(options);
  const { headerOf } = lookups;
  const forget = createForget(options);
  const shared = { chain: config.name, values, follower, cost, telemetry };
  const table = new CallTable({ ...shared, maxBytes: options.maxBytes, onCleared: options.onDropped });
  const checks = new CallChecks({ ...shared, table, audit, forget });
  const callNode = createCallNode(upstreams);
  const defaults = new NodeDefaultsCache({ callNode, headerOf, cost, onOutdated: () => table.clear() });
  const run = createRun(options, lookups);
  const runner = new CallRunner({ ...shared, ...lookups, run, defaults, checks, forget });
  const blockTimeMs = () => upstreams.heads.blockTimeMs;
  const learner = new CallLearner({ ...shared, loader, table, defaults, runner, blockTimeMs });
  const { waitMs } = config.state;
  const callCache = new CallCache({ ...shared, table, learner, loader, runner, checks, waits, waitMs });
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
