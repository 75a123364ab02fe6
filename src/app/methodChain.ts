import { createUnitsOf } from "../access/providerUnits.ts";
import type { ChainConfig, Config } from "../config/schema.ts";
import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { View } from "../core/view.ts";
import { chainForks } from "../ethereum/chainForks.ts";
import type { HeadsBehind } from "../heads/headsBehind.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import { SplitLogs } from "../logs/splitLogs.ts";
import { CommittedBlocks } from "../methods/committedBlocks.ts";
import type { Chain } from "../methods/method.ts";
import { blocksByNumber, headerOf, parentHashOf, receiptsOf } from "../methods/ownBlockReads.ts";
import { ParsedReads } from "../methods/parsedReads.ts";
import type { FilterStore } from "../subscriptions/filterStore.ts";
import { PolledFilters } from "../subscriptions/polledFilters.ts";
import { SharedFilters } from "../subscriptions/sharedFilters.ts";
import { OwnHashes } from "../verification/checkHeader.ts";
import { LogVerifier } from "../verification/logVerifier.ts";
import { maxResponseBytesOf } from "./chainDispatch.ts";
import type { ChainState } from "./chainState.ts";
import type { ChainViews } from "./chainViews.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";
import type { Shared } from "./shared.ts";

export interface MethodChainOptions {
  readonly config: ChainConfig;
  readonly server: Config["server"];
  readonly shared: Pick<Shared, "logSlots" | "budget" | "provenBlocks" | "telemetry">;
  readonly upstreams: Upstreams;
  readonly pipeline: ReadPipeline;
  readonly views: ChainViews;
  readonly behind: HeadsBehind;
  readonly state: Pick<ChainState, "reads" | "callCache" | "forget">;
  readonly filters: FilterStore;
  /** They read through the methods of the chain. */
  subscriptions(): Chain["subscriptions"];
}

/** Whether a node asks at most as much for the receipts of a block as for its logs. */
const areReceiptsCheap = ({ state }: ChainConfig): boolean => {
  const unitsOf = createUnitsOf(state.units);
  return unitsOf("eth_getBlockReceipts") <= unitsOf("eth_getLogs");
};

const createLogs = ({ config, server, shared, upstreams, pipeline }: MethodChainOptions): SplitLogs =>
  new SplitLogs({
    chain: config.name,
    nodes: upstreams.nodes,
    // Half of the query's time: a node that does not respond leaves as much to a second one.
    rangeTimeoutMs: Math.ceil(config.upstream.timeoutMs / Math.min(2, upstreams.nodes.length)),
    store: pipeline.store,
    slots: shared.logSlots,
    memory: shared.budget,
    maxResponseBytes: maxResponseBytesOf(server),
    agree: config.reads.agree,
    verifier: new LogVerifier(upstreams.verifier, {
      areReceiptsCheap: areReceiptsCheap(config),
      receiptsOf: receiptsOf(pipeline.reads),
      headerOf: headerOf(pipeline.reads),
    }),
    telemetry: shared.telemetry,
  });

const createChainFilters = (
  { config, shared, filters, pipeline: { runScript, reads, store } }: MethodChainOptions,
  logs: SplitLogs,
): Chain["filters"] => {
  const { maxFilters: maxPerClient, maxFilterBytes: maxBytesPerClient } = config.logs;
  return new PolledFilters({
    logs,
    store,
    parentHashOf: parentHashOf(reads),
    blocksBelow: blocksByNumber(reads),
    local: filters,
    shared: runScript && new SharedFilters({ maxPerClient, maxBytesPerClient, run: runScript }),
    onLocal: (err) =>
      shared.telemetry.log.debug({ err, chain: config.name }, "a new filter is not shared with other replicas"),
  });
};

/** The heads of a client with confirmations are that many blocks behind. */
const createHeads = ({ upstreams: { heads }, views, behind: older }: MethodChainOptions): Chain["heads"] => {
  const seenFrom = (newest: Heads, behind: Context["behind"]): Heads =>
    behind === undefined ? newest : older.view(newest, behind.confirmations).heads;
  const newestView = (behind: Context["behind"]): View => {
    const view = views.view();
    return behind === undefined ? view : older.view(view.heads, behind.confirmations);
  };
  return {
    refresh: async ({ behind }) => seenFrom(await heads.refresh(), behind),
    reach: (range, { behind }) => heads.reach(range)?.then(() => newestView(behind)),
    get blockTimeMs() {
      return heads.blockTimeMs;
    },
  };
};

/** Creates the dependencies of one chain's methods. */
export const createMethodChain = (options: MethodChainOptions): Chain => {
  const { config, upstreams, pipeline, views, state } = options;
  const { maxBlocks, maxFilters: _, maxFilterBytes: __, ...logLimits } = config.logs;
  const logs = createLogs(options);
  const ownHashes = new OwnHashes();
  return {
    get chainId() {
      return upstreams.genesis.chainId;
    },
    get networkId() {
      return upstreams.networkId;
    },
    get forks() {
      return views.forks ?? chainForks(upstreams.genesis.chainId);
    },
    reads: pipeline.reads,
    parsedReads: new ParsedReads(),
    ownHashes,
    committed: new CommittedBlocks(ownHashes),
    provenBlocks: options.shared.provenBlocks,
    nodes: upstreams,
    capabilities: () => upstreams.capabilities(),
    get state() {
      return state.reads;
    },
    forgetState: () => state.forget(),
    get callCache() {
      return state.callCache;
    },
    heads: createHeads(options),
    logs,
    filters: createChainFilters(options, logs),
    get subscriptions() {
      return options.subscriptions();
    },
    logLimits: { ...logLimits, maxBlocks: maxBlocks === "none" ? undefined : maxBlocks },
    get execution() {
      return views.execution;
    },
    pendingNumber: config.simulate.pendingNumber,
    sendsToAll: config.writes === "all",
    advanceNonce: (sender, nonce) => views.advanceNonce(sender, nonce),
    subscribe: (listener) => views.subscribe(listener),
    recordSubmitted: async (raw) => {
      const submitted = await views.recordSubmitted(raw);
      if (submitted) {
        pipeline.negativeCache.expectTransactions([submitted.hash]);
      }
      return submitted;
    },
  };
};
