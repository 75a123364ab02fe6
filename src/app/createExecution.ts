import { availableParallelism } from "node:os";
import { createUnitsOf } from "../access/providerUnits.ts";
import { createAgreedFetch } from "../cache/agreedFetch.ts";
import { Disagreements } from "../cache/disagreements.ts";
import type { StatedValues } from "../cache/statedValues.ts";
import type { StateStore } from "../cache/tieredStore.ts";
import type { ChainConfig } from "../config/schema.ts";
import { type Caller, type StateReadContext, spendUnits } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import type { StateSource } from "../core/stateReader.ts";
import { nativeContracts } from "../ethereum/chainForks.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import type { ModuleKind } from "../evm/fast/fastModule.ts";
import type { SenderCache } from "../evm/senders/senderCache.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import { FairGate } from "../limits/fairGate.ts";
import { ownerOf } from "../limits/fairQueue.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { createBatchFetch } from "../nodes/fetchStateBatch.ts";
import { ExecutorClient } from "../pending/executorClient.ts";
import type { Executor } from "../pending/flashblockJob.ts";
import type { EvmThreads } from "../runs/evmThreads.ts";
import { EvmWorkers } from "../runs/evmWorkers.ts";
import { SenderRecovery } from "../runs/senderRecovery.ts";
import { createSimulator, createStateReadLimit, type Simulator } from "../simulation/simulator.ts";
import type { ExecutionReads } from "../state/executionReads.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import { StateFetcher } from "../state/fetch/stateFetcher.ts";
import { StateOfNodes } from "../state/fetch/stateOfNodes.ts";
import type { ValueStore } from "../state/store/valueStore.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { workerEntry } from "./workerEntry.ts";

/** The execution of one chain. */
export interface ChainExecution {
  readonly simulator: Simulator;
  /** Creates the executor of the feed's transactions. Its thread starts with the first call. */
  executor(): Executor;
  stateAt(block: BlockId, hint: PrefetchHint | undefined, context: StateReadContext): StateSource;
  close(): Promise<void>;
}

const FETCH_TIMEOUT_MS = 5_000;
/** Parts of state reads at once. Each is up to 100 calls to a node. Clients take turns. */
const MAX_STATE_READS = 16;
/** All chains share the threads, so that many chains on a machine with many cores do not fill its memory. */
const MAX_DEFAULT_WORKERS = 4;

export interface ChainExecutionOptions {
  readonly config: ChainConfig;
  readonly rules: { readonly forks: ChainForks };
  readonly upstreams: Upstreams;
  /** Returns the known state, which executions of clients take values from. Undefined if it is not followed. */
  knownState(): ExecutionReads | undefined;
  /** Returns the values of the chain's state. */
  store(): ValueStore;
  /** Caches the state of final blocks, for all replicas. */
  readonly stateStore: StateStore;
  readonly stated: StatedValues;
  readonly senders: SenderCache;
  /** The threads of all chains. */
  readonly threads: EvmThreads;
  /** The memory budget of the process. */
  readonly memory: MemoryBudget;
  readonly telemetry: Telemetry;
  /** Counts the units that a client spends. */
  spend(caller: Caller, units: number): void;
}

/** The default of `simulate.workers`. */
export const defaultWorkers = (cores: number): number => Math.min(MAX_DEFAULT_WORKERS, Math.max(1, cores - 1));

const createState = ({
  config,
  upstreams,
  knownState,
  store,
  stateStore,
  stated,
  telemetry,
}: ChainExecutionOptions): StateOfNodes => {
  const { heads } = upstreams;
  const agreed = createAgreedFetch({
    ...{ nodes: upstreams.nodes, agree: config.reads.agree, timeoutMs: FETCH_TIMEOUT_MS },
    fetchFrom: (nodes, timeoutMs) => createBatchFetch({ nodes, heads }, timeoutMs),
    disagreements: new Disagreements(config.name, telemetry),
  });
  return new StateOfNodes({
    fetcher: new StateFetcher(agreed, createUnitsOf(config.state.units)),
    finalStore: ({ number }) => (number <= (heads.current()?.finalized?.number ?? -1n) ? stateStore : undefined),
    beginFetch: (block) => knownState()?.beginFetch(block),
    store,
    hashOf: (number) => heads.current()?.at(number)?.hash,
    epoch: () => stated.epoch(Date.now()),
  });
};

const moduleOf = ({ op }: ChainForks): ModuleKind => (op === undefined ? "ethereum" : "optimism");

const createSimulationWorkers = (options: ChainExecutionOptions): EvmWorkers => {
  const { config, telemetry } = options;
  const { name: chain, simulate } = config;
  const { metrics } = telemetry;
  const size = simulate.workers ?? defaultWorkers(availableParallelism());
  metrics.workersMax.set({ chain }, size);
  return new EvmWorkers({
    entry: workerEntry("simulation"),
    threads: options.threads,
    chain,
    engine: simulate.engine,
    module: moduleOf(options.rules.forks),
    size,
    onDeadline: () => metrics.deadlineHits.inc({ chain }),
  });
};

const createChainSimulator = (
  { config, rules, upstreams, memory, telemetry }: ChainExecutionOptions,
  workers: EvmWorkers,
  nativesAt: NativesAt,
): Simulator => {
  const { name: chain, simulate } = config;
  const { metrics } = telemetry;
  return createSimulator({
    workers,
    forks: () => rules.forks,
    nativesAt,
    profile: simulate.profile,
    errorShape: simulate.errorShape,
    maxBlocks: simulate.maxBlocks,
    maxCalls: simulate.maxCalls,
    gasCap: BigInt(simulate.gasCap),
    maxResponseBytes: simulate.maxResponseBytes,
    memory,
    timeoutMs: simulate.timeoutMs,
    blockTimeMs: () => upstreams.heads.blockTimeMs,
    onRun: (kind, { outcome, rounds, seconds }) => {
      metrics.simulateRuns.inc({ chain, kind, outcome });
      metrics.simulateSeconds.observe({ chain, kind }, seconds);
      if (rounds !== undefined) {
        metrics.simulateRounds.observe({ chain }, rounds);
      }
    },
  });
};

type NativesAt = (timestamp: bigint) => ReturnType<typeof nativeContracts>;

const createFeedExecutor = (
  { config, rules, senders, telemetry }: ChainExecutionOptions,
  state: StateOfNodes,
  workers: EvmWorkers,
  nativesAt: NativesAt,
): Executor => {
  const { name: chain, simulate } = config;
  const { log, metrics } = telemetry;
  return new ExecutorClient({
    entry: workerEntry("pending"),
    engine: simulate.engine,
    forks: () => rules.forks,
    senders: new SenderRecovery({ cache: senders, workers }),
    // The feed has the newest blocks.
    nativeContracts: nativesAt(BigInt(Math.floor(Date.now() / 1_000))),
    stateAt: (block, hint) => state.at(block, hint),
    onFailure: (error) => log.error({ err: error, chain }, "a worker failed"),
    onRetry: ({ number, index }, cause) => {
      metrics.pendingMismatches.inc({ chain, what: "unreadable" });
      log.warn({ chain, number, index, cause }, "a message's state could not be read, it is tried again");
    },
  });
};

/** Creates the execution of one chain: its state from nodes, its worker threads, its simulator. */
export const createExecution = (options: ChainExecutionOptions): ChainExecution => {
  const { config, telemetry } = options;
  const nativesAt: NativesAt = (timestamp) => nativeContracts(options.rules.forks.chainId, timestamp);
  const state = createState(options);
  const workers = createSimulationWorkers(options);
  const { beforeScrape, workersBusy } = telemetry.metrics;
  const measure = (): void => workersBusy.set({ chain: config.name }, workers.busy);
  beforeScrape.add(measure);
  const turns = new FairGate({ max: MAX_STATE_READS, overloaded: "too many state reads are waiting" });
  return {
    simulator: createChainSimulator(options, workers, nativesAt),
    executor: () => createFeedExecutor(options, state, workers, nativesAt),
    stateAt: (block, hint, context) =>
      state.at(block, hint, {
        onRead: createStateReadLimit({
          maxStateReads: config.simulate.maxStateReads,
          context,
          onExceeded: () => telemetry.metrics.stateReadLimitHits.inc({ chain: config.name }),
        }),
        // With two origins, each reads all values.
        onSpent: (units) => {
          const ofAll = units * config.reads.agree;
          spendUnits(context, ofAll);
          options.spend(context.caller, ofAll);
        },
        known:
          context.bypassCache || context.noCache === true
            ? undefined
            : options.knownState()?.begin(block, context.caller.clientId),
        takeTurn: (task) => turns.run(ownerOf(context.caller), task),
      }),
    close: () => {
      beforeScrape.delete(measure);
      return workers.close();
    },
  };
};
