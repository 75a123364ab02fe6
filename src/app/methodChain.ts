import type { UnitsOf } from "../access/providerUnits.ts";
import { chainForks } from "../ethereum/chainForks.ts";
import type { HeadsBehind } from "../heads/headsBehind.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import { SplitLogs } from "../logs/splitLogs.ts";
import { CommittedBlocks } from "../methods/committedBlocks.ts";
import type { MethodChain } from "../methods/method.ts";
import { blocksByNumber, headerOf, parentHashOf, receiptsOf } from "../methods/ownBlockReads.ts";
import { ParsedReads } from "../methods/parsedReads.ts";
import type { Pending } from "../pending/pending.ts";
import { parseSubmitted } from "../pending/submittedTransaction.ts";
import type { ChainState } from "../state/chainState.ts";
import { LocalFilters } from "../subscriptions/localFilters.ts";
import { PolledFilters } from "../subscriptions/polledFilters.ts";
import { SharedFilters } from "../subscriptions/sharedFilters.ts";
import { LogVerifier } from "../verification/logVerifier.ts";
import type { ChainParts } from "./createReadPipeline.ts";
import { maxResponseBytesOf } from "./shared.ts";

/** The chain whose methods these are. Some of its parts exist only once it is known. */
interface ServedChain {
  readonly pending: Pending;
  readonly state: Pick<ChainState, "reads" | "callCache" | "forget">;
  readonly forks: MethodChain["forks"];
  readonly execution: MethodChain["execution"];
  /** They read through the methods of the chain. */
  readonly subscriptions: MethodChain["subscriptions"];
}

/** Whether a node asks at most as much for the receipts of a block as for its logs. */
const areReceiptsCheap = (unitsOf: UnitsOf): boolean => unitsOf("eth_getBlockReceipts") <= unitsOf("eth_getLogs");

const createLogs = ({ config, shared, upstreams, pipeline, unitsOf }: ChainParts): SplitLogs =>
  new SplitLogs({
    chain: config.name,
    nodes: upstreams.nodes,
    // Half of the query's time: a node that does not respond leaves as much to a second one.
    rangeTimeoutMs: Math.ceil(config.upstream.timeoutMs / Math.min(2, upstreams.nodes.length)),
    store: pipeline.store,
    slots: shared.logSlots,
    memory: shared.budget,
    maxResponseBytes: maxResponseBytesOf(shared.server),
    agree: config.reads.agree,
    verifier: new LogVerifier(upstreams.verifier, {
      areReceiptsCheap: areReceiptsCheap(unitsOf),
      receiptsOf: receiptsOf(pipeline.reads),
      headerOf: headerOf(pipeline.reads),
    }),
    telemetry: shared.telemetry,
  });

const createChainFilters = (
  { config, shared: { budget, telemetry }, pipeline: { runScript, reads, store } }: ChainParts,
  logs: SplitLogs,
): MethodChain["filters"] => {
  const { maxFilters: maxPerClient, maxFilterBytes: maxBytesPerClient } = config.logs;
  return new PolledFilters({
    logs,
    store,
    parentHashOf: parentHashOf(reads),
    blocksBelow: blocksByNumber(reads),
    local: new LocalFilters({ maxPerClient, maxBytesPerClient, memory: budget }),
    shared: runScript && new SharedFilters({ maxPerClient, maxBytesPerClient, run: runScript }),
    onLocal: (err) =>
      telemetry.log.debug({ err, chain: config.name }, "a new filter is not shared with other replicas"),
  });
};

/** The heads of a client with confirmations are that many blocks behind. */
const createHeads = (
  { heads }: Upstreams,
  pending: Pick<Pending, "view">,
  older: HeadsBehind,
): MethodChain["heads"] => ({
  refresh: async ({ behind }) => older.seenFrom({ heads: await heads.refresh() }, behind).heads,
  reach: (range, { behind }) => heads.reach(range)?.then(() => older.seenFrom(pending.view(), behind)),
  get blockTimeMs() {
    return heads.blockTimeMs;
  },
});

/** Creates the dependencies of one chain's methods. */
export const createMethodChain = (parts: ChainParts, chain: ServedChain, behind: HeadsBehind): MethodChain => {
  const { config, shared, upstreams, pipeline, ownHashes } = parts;
  const { pending, state } = chain;
  const { maxBlocks, maxFilters: _, maxFilterBytes: __, ...logLimits } = config.logs;
  const logs = createLogs(parts);
  return {
    get chainId() {
      return upstreams.genesis.chainId;
    },
    get networkId() {
      return upstreams.networkId;
    },
    get forks() {
      return chain.forks ?? chainForks(upstreams.genesis.chainId);
    },
    reads: pipeline.reads,
    parsedReads: new ParsedReads(),
    ownHashes,
    committed: new CommittedBlocks(ownHashes),
    provenBlocks: shared.provenBlocks,
    nodes: upstreams,
    capabilities: () => upstreams.capabilities(),
    get state() {
      return state.reads;
    },
    forgetState: () => state.forget(),
    get callCache() {
      return state.callCache;
    },
    heads: createHeads(upstreams, pending, behind),
    logs,
    filters: createChainFilters(parts, logs),
    get subscriptions() {
      return chain.subscriptions;
    },
    logLimits: { ...logLimits, maxBlocks: maxBlocks === "none" ? undefined : maxBlocks },
    get execution() {
      return chain.execution;
    },
    pendingNumber: config.simulate.pendingNumber,
    sendsToAll: config.writes === "all",
    advanceNonce: (sender, nonce) => pending.advanceNonce(sender, nonce),
    subscribe: (listener) => pending.subscribe(listener),
    recordSubmitted: async (raw) => {
      const submitted = parseSubmitted(raw);
      if (submitted?.sent !== undefined) {
        await pending.recordSubmitted(submitted.hash, submitted.sent.sender, submitted.sent.nonce);
      }
      if (submitted) {
        pipeline.negativeCache.expectTransactions([submitted.hash]);
      }
      return submitted;
    },
  };
};
