import { availableParallelism } from "node:os";
import type { TieredStore } from "../cache/tieredStore.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { BlockId } from "../core/heads.ts";
import type { StateSource } from "../core/stateReader.ts";
import { nativeContracts } from "../ethereum/opForks.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import { EvmWorkers } from "../evm/evmWorkers.ts";
import { createNodeState } from "../evm/nodeState.ts";
import type { PrefetchHint } from "../evm/prefetch.ts";
import { storedFetch } from "../evm/storedFetch.ts";
import type { Executor } from "../pending/execution.ts";
import { createExecutor, type ExecutorOptions } from "../pending/executor.ts";
import { createSimulator, type Simulator } from "../simulation/simulator.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createStateFetcher } from "./fetchStateBatch.ts";
import type { Upstreams } from "./upstreams.ts";
import { workerEntry } from "./workerEntry.ts";

/** What executes on one chain. */
export interface Execution {
  readonly simulator: Simulator;
  /** A thread of its own, for the feed's transactions; begun with the first call. */
  executor(): Executor;
  stateAt(block: BlockId, wish?: PrefetchHint): StateSource;
  close(): Promise<void>;
}

const STATE_CACHE_BYTES = 64 * 1024 * 1024;
const FETCH_TIMEOUT_MS = 5_000;
/** Of each chain: many chains on a machine with many cores must not fill its memory. */
const MAX_DEFAULT_WORKERS = 4;

export interface ExecutionOptions {
  readonly config: ChainConfig;
  readonly rules: { readonly forks: ChainForks };
  readonly upstreams: Upstreams;
  /** Where state of final blocks is kept for all replicas. */
  readonly store: TieredStore;
  readonly telemetry: Telemetry;
}

export const createExecution = ({ config, rules, upstreams, store, telemetry }: ExecutionOptions): Execution => {
  const { name: chain, simulate } = config;
  const { log, metrics } = telemetry;
  const nativesAt = (timestamp: bigint) => nativeContracts(rules.forks.chainId, timestamp);
  const { heads } = upstreams;
  const state = createNodeState({
    fetch: storedFetch({
      fetch: createStateFetcher(upstreams, FETCH_TIMEOUT_MS),
      store: {
        get: async (key) => (await store.get([key]))[0]?.bytes,
        set: (key, value) => store.set(key, value, "final", undefined),
      },
      isFinal: ({ number }) => number <= (heads.current()?.finalized?.number ?? -1n),
    }),
    maxBytes: STATE_CACHE_BYTES,
    hashOf: (number) => heads.current()?.at(number)?.hash,
    onFetch: (values) => metrics.simulateFetched.inc({ chain }, values),
  });
  const onFailure = (error: Error) => log.error({ err: error, chain }, "a worker failed");
  const onRetry: ExecutorOptions["onRetry"] = ({ number, index }, cause) => {
    metrics.pendingMismatches.inc({ chain, what: "unreadable" });
    log.warn({ chain, number, index, cause }, "a message's state could not be read, it is tried again");
  };
  const size = simulate.workers ?? Math.min(MAX_DEFAULT_WORKERS, Math.max(1, availableParallelism() - 1));
  metrics.workers.set({ chain }, 0);
  metrics.workersMax.set({ chain }, size);
  metrics.workersBusy.set({ chain }, 0);
  const workers = new EvmWorkers({
    entry: workerEntry("simulation"),
    size,
    onFailure,
    onThreads: (threads) => metrics.workers.set({ chain }, threads),
    onDeadline: () => metrics.deadlineHits.inc({ chain }),
  });
  const simulator = createSimulator({
    workers,
    forks: () => rules.forks,
    nativesAt,
    profile: simulate.profile,
    errorShape: simulate.errorShape,
    maxBlocks: simulate.maxBlocks,
    maxCalls: simulate.maxCalls,
    gasCap: BigInt(simulate.gasCap),
    timeoutMs: simulate.timeoutMs,
    blockTimeMs: () => heads.blockTimeMs,
    onStart: () => metrics.workersBusy.set({ chain }, workers.busy),
    onRun: (kind, { outcome, rounds, seconds }) => {
      metrics.simulateRuns.inc({ chain, kind, outcome });
      metrics.simulateSeconds.observe({ chain, kind }, seconds);
      if (rounds !== undefined) metrics.simulateRounds.observe({ chain }, rounds);
      metrics.workersBusy.set({ chain }, workers.busy);
    },
  });
  return {
    simulator,
    executor: () =>
      createExecutor({
        entry: workerEntry("pending"),
        forks: () => rules.forks,
        // The feed is of the newest blocks.
        nativeContracts: nativesAt(BigInt(Math.floor(Date.now() / 1_000))),
        stateAt: (block, hint) => state.at(block, hint),
        onFailure,
        onRetry,
      }),
    stateAt: (block, wish) => state.at(block, wish),
    close: async () => {
      await workers.close();
    },
  };
};

/** Where the rules of a chain are not known: what the feed tells is served, state is the node's. */
export const noExecutor: Executor = {
  execute: () => Promise.reject(new Error("this chain is not executed here")),
  rebase: () => {},
  close: async () => {},
};
