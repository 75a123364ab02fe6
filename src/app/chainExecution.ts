import { availableParallelism } from "node:os";
import { type StateReadContext, spendUnits } from "../core/context.ts";
import type { BlockId, HeaderFields } from "../core/heads.ts";
import type { StateKeys, StateSource } from "../core/stateReader.ts";
import { nativeContracts } from "../ethereum/chainForks.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import type { ModuleKind } from "../evm/engine.ts";
import { FairGate } from "../limits/fairGate.ts";
import { ownerOf } from "../limits/fairQueue.ts";
import type { Executor } from "../pending/executableMessage.ts";
import { ExecutorClient } from "../pending/executorClient.ts";
import { defaultWorkers, EvmWorkers } from "../runs/evmWorkers.ts";
import type { RulesWatch } from "../runs/rulesWatch.ts";
import { parseBaseBlock } from "../simulation/simulatedHeader.ts";
import { createSimulator, createStateReadLimit, type Simulator } from "../simulation/simulator.ts";
import { type BlockState, BlockStates, type KnownState } from "../state/blockState.ts";
import type { CallOutcome, CallRun } from "../state/calls/callRun.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import type { ChainParts } from "./createReadPipeline.ts";

const FETCH_TIMEOUT_MS = 5_000;
/** Parts of state reads at once. Each is up to 100 calls to a node. Clients take turns. */
const MAX_STATE_READS = 16;

/** What an execution reads of its chain. */
interface ExecutedChain {
  readonly rules: Pick<RulesWatch, "forks">;
  readonly state: KnownState;
}

const createStates = (
  { config, shared: { telemetry }, upstreams, pipeline }: ChainParts,
  known: KnownState,
): BlockStates =>
  new BlockStates({
    ...{ chain: config.name, heads: upstreams.heads, known, telemetry },
    fetcher: pipeline.createFetcher(FETCH_TIMEOUT_MS),
    epoch: (block) => pipeline.stated.epoch(Date.now(), block),
    onUnagreed: (block) => pipeline.stated.onUnagreed(block),
  });

const moduleOf = ({ op }: ChainForks): ModuleKind => (op === undefined ? "ethereum" : "optimism");

const createSimulationWorkers = (
  { config: { name: chain, simulate }, shared: { evmThreads, telemetry } }: ChainParts,
  { forks }: ExecutedChain["rules"],
): EvmWorkers => {
  const { metrics } = telemetry;
  const size = simulate.workers ?? defaultWorkers(availableParallelism());
  metrics.workersMax.set({ chain }, size);
  return new EvmWorkers({
    threads: evmThreads,
    chain,
    engine: simulate.engine,
    module: moduleOf(forks),
    size,
    onDeadline: () => metrics.deadlineHits.inc({ chain }),
  });
};

const createChainSimulator = (
  { config: { name: chain, simulate }, shared: { budget, telemetry }, upstreams: { heads } }: ChainParts,
  rules: ExecutedChain["rules"],
  workers: EvmWorkers,
): Simulator => {
  const { metrics } = telemetry;
  const { profile, errorShape, maxBlocks, maxCalls, maxResponseBytes, timeoutMs, gasCap } = simulate;
  return createSimulator({
    workers,
    forks: () => rules.forks,
    nativesAt: nativesOf(rules),
    ...{ profile, errorShape, maxBlocks, maxCalls, maxResponseBytes, timeoutMs },
    gasCap: BigInt(gasCap),
    memory: budget,
    blockTimeMs: () => heads.blockTimeMs,
    onRun: (kind, { outcome, rounds, seconds }) => {
      metrics.simulateRuns.inc({ chain, kind, outcome });
      metrics.simulateSeconds.observe({ chain, kind }, seconds);
      if (rounds !== undefined) {
        metrics.simulateRounds.observe({ chain }, rounds);
      }
    },
  });
};

const nativesOf =
  (rules: ExecutedChain["rules"]) =>
  (timestamp: bigint): ReturnType<typeof nativeContracts> =>
    nativeContracts(rules.forks.chainId, timestamp);

const createFeedExecutor = (
  { config: { name: chain, simulate }, shared }: ChainParts,
  { rules }: ExecutedChain,
  states: BlockStates,
): Executor => {
  const { log, metrics } = shared.telemetry;
  return new ExecutorClient({
    workers: new EvmWorkers({
      threads: shared.evmThreads,
      chain,
      engine: simulate.engine,
      module: moduleOf(rules.forks),
      size: 1,
      isReserved: true,
    }),
    forks: () => rules.forks,
    // The feed has the newest blocks.
    nativeContracts: nativesOf(rules)(BigInt(Math.floor(Date.now() / 1_000))),
    stateAt: (block) => states.at(block, { from: "nodes" }),
    onRetry: ({ number, index }, cause) => {
      metrics.pendingMismatches.inc({ chain, what: "unreadable" });
      log.warn({ chain, number, index, cause }, "a message's state could not be read, it is tried again");
    },
    onFailed: ({ number, index }, cause) => {
      metrics.pendingMismatches.inc({ chain, what: "failed" });
      log.warn({ chain, number, index, what: "failed", cause }, "the state of a flashblock is not verified");
    },
  });
};

/** The execution of one chain: its state from nodes, its worker threads, its simulator. */
export class ChainExecution {
  readonly simulator: Simulator;
  /** Creates the executor of the feed's transactions. Its thread starts with the first call. */
  readonly executor: () => Executor;
  readonly #parts: ChainParts;
  readonly #states: BlockStates;
  readonly #workers: EvmWorkers;
  readonly #turns = new FairGate({ max: MAX_STATE_READS, overloaded: "too many state reads are waiting" });
  readonly #measure: () => void;
  readonly #spend: ReturnType<UsageLedger["spending"]>;

  constructor(parts: ChainParts, chain: ExecutedChain) {
    const { config, shared } = parts;
    const { beforeScrape, workersBusy } = shared.telemetry.metrics;
    const states = createStates(parts, chain.state);
    const workers = createSimulationWorkers(parts, chain.rules);
    this.#parts = parts;
    this.#states = states;
    this.#workers = workers;
    this.#spend = shared.usages.spending(config.name);
    this.#measure = () => workersBusy.set({ chain: config.name }, workers.busy);
    beforeScrape.add(this.#measure);
    this.simulator = createChainSimulator(parts, chain.rules, workers);
    this.executor = () => createFeedExecutor(parts, chain, states);
  }

  /** Executes a call on the block of a header, and returns what it read. */
  runCall(call: Omit<CallRun, "block">, header: HeaderFields, signal: AbortSignal): Promise<CallOutcome> {
    const { method, source, paramsText, gasCap } = call;
    const kind = method === "eth_call" ? "repeatedCall" : "estimateGas";
    const base = { block: parseBaseBlock(header), source };
    return this.simulator.trace({ kind, paramsText, gasCap, signal, base });
  }

  stateAt(block: BlockId, hint: PrefetchHint | undefined, context: StateReadContext): StateSource {
    const { name: chain, simulate, reads } = this.#parts.config;
    const { metrics } = this.#parts.shared.telemetry;
    const { caller, bypassCache, noCache } = context;
    return this.#states.at(block, {
      from: bypassCache || noCache === true ? "nodes" : "both",
      client: caller.clientId,
      hint,
      onRead: createStateReadLimit({
        maxStateReads: simulate.maxStateReads,
        context,
        onExceeded: () => metrics.stateReadLimitHits.inc({ chain }),
      }),
      // With two origins, each reads all values.
      onSpent: (units) => {
        const ofAll = units * reads.agree;
        spendUnits(context, ofAll);
        this.#spend(caller, ofAll);
      },
      takeTurn: (task) => this.#turns.run(ownerOf(caller), task),
    });
  }

  /** Returns the state after a block from known values alone. Those that a run probably reads are sent with it. */
  knownStateAt(block: BlockId, expected: StateKeys | undefined): BlockState {
    return this.#states.at(block, { from: "known", expected });
  }

  close(): Promise<void> {
    this.#parts.shared.telemetry.metrics.beforeScrape.delete(this.#measure);
    return this.#workers.close();
  }
}
