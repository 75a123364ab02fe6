import { createUnitsOf } from "../access/providerUnits.ts";
import { StoredChain } from "../cache/storedChain.ts";
import { originOf } from "../config/providers.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { Heads } from "../core/heads.ts";
import { formatQuantity, type Hash, isHash } from "../ethereum/hex.ts";
import { Upstreams } from "../heads/upstreams.ts";
import { isFields } from "../json/jsonBytes.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { isQuickMethod, methodLabel } from "../methods/handlers.ts";
import { directNodeCall } from "../nodes/directNodeCall.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import { LocalFilters } from "../subscriptions/localFilters.ts";
import { ForwardedReasons, isDevelopmentNode } from "../telemetry/forwardedReasons.ts";
import { maxResponseBytesOf } from "./chainDispatch.ts";
import { ChainState } from "./chainState.ts";
import { ChainViews } from "./chainViews.ts";
import { createReadPipeline, type ReadPipeline } from "./createReadPipeline.ts";
import type { Shared } from "./shared.ts";

/** Creates the nodes of one chain. */
const createUpstreams = (config: ChainConfig, shared: Shared): Upstreams =>
  new Upstreams(
    {
      chain: config.name,
      nodes: config.nodes.map((node, index) => ({
        ...{ ...node, origin: originOf(node) },
        budget: shared.usages.budgets.find({ chain: config.name, node: nodeName(node, index) }),
      })),
      finality: config.finality,
      agree: config.heads.agree,
      breaker: config.upstream.breaker,
      attempts: config.upstream.attempts,
      maxWaiting: config.upstream.maxWaiting,
      hedge: config.upstream.hedge.maxShare === 0 ? undefined : config.upstream.hedge,
      chainId: config.chainId,
      blockTimeMs: config.blockTimeMs,
      hasFeed: config.pending.feeds.length > 0,
      maxResponseBytes: maxResponseBytesOf(shared.server),
      memory: shared.budget,
      methodLabel,
      unitsOf: createUnitsOf(config.state.units),
      onCall: shared.usages.nodeCalls(config.name),
      isQuick: isQuickMethod,
      onWrongChain: shared.onWrongChain,
      verify: config.verify,
      checksOff: config.quirks.anvilDepositNonce ? ["depositReceipts"] : [],
      verifyPool: shared.verifyPool,
    },
    shared.telemetry,
  );

/** The sources of the answers of one chain. */
export interface ChainSources {
  readonly upstreams: Upstreams;
  readonly pipeline: ReadPipeline;
  readonly views: ChainViews;
  readonly state: ChainState;
  /** The filters that are not in Redis. */
  readonly filters: LocalFilters;
  /** Why nodes answer calls that forebay could answer. */
  readonly forwarded: ForwardedReasons;
  close(): Promise<void>;
}

interface StoredParts {
  readonly config: ChainConfig;
  readonly shared: Shared;
  readonly upstreams: Upstreams;
  readonly pipeline: ReadPipeline;
  readonly signal: AbortSignal;
}

/** Opens the entries of the chain in the data folder when the chain is known. */
const storeChain = ({ config, shared, upstreams, pipeline, signal }: StoredParts): void => {
  const { storage, disk, diskMode, telemetry } = shared;
  const { heads } = upstreams;
  if (storage === undefined || disk === undefined) {
    return;
  }
  const begin = (current: Heads): void => {
    const callNode = directNodeCall(upstreams.background, () => ({ heads: heads.current() ?? current }));
    const stored = new StoredChain({
      ...{ chain: config.name, storage, keys: pipeline.keys, telemetry, signal },
      isStored: async () =>
        diskMode === "always" || !isDevelopmentNode(await callNode("web3_clientVersion", []).catch(textOfRefusal)),
      hashAt: async (number) => {
        const known = heads.current()?.at(number)?.hash;
        return known ?? hashOfBlock(await callNode("eth_getBlockByNumber", [formatQuantity(number), false]));
      },
    });
    stored.onHeads(current);
    heads.subscribe((change) => stored.onHeads(change.heads));
  };
  upstreams.ready.then(
    () => {
      const current = heads.current();
      if (current !== undefined) {
        begin(current);
      }
    },
    // It was closed before.
    () => undefined,
  );
};

/** A node that refuses the method is no development node. Without any response, nothing is known. */
const textOfRefusal = (error: unknown): string => {
  if (error instanceof RpcError && error.code !== CODES.INTERNAL) {
    return error.message;
  }
  throw error;
};

const hashOfBlock = (block: unknown): Hash | undefined =>
  isFields(block) && isHash(block.hash) ? block.hash : undefined;

/** Follows a chain: its nodes, its feed and its state. */
export const createChainSources = (config: ChainConfig, shared: Shared, signal: AbortSignal): ChainSources => {
  const { telemetry, budget, evmThreads: threads, writeSetThread: thread } = shared;
  const upstreams = createUpstreams(config, shared);
  const pipeline = createReadPipeline(config, shared, upstreams, signal);
  storeChain({ config, shared, upstreams, pipeline, signal });
  const forwarded = new ForwardedReasons(config.name, telemetry);
  const views: ChainViews = new ChainViews({
    config,
    upstreams,
    pipeline,
    knownState: () => state.executionReads,
    store: () => state.store,
    forwarded,
    budget,
    threads,
    telemetry,
    usages: shared.usages,
  });
  const parts = { config, upstreams, pipeline, views, thread, forwarded, storage: shared.storage, signal, telemetry };
  const state: ChainState = new ChainState(parts);
  const { maxFilters: maxPerClient, maxFilterBytes: maxBytesPerClient } = config.logs;
  return {
    upstreams,
    pipeline,
    views,
    state,
    filters: new LocalFilters({ maxPerClient, maxBytesPerClient, memory: budget }),
    forwarded,
    close: async () => {
      state.close();
      await views.close();
      await upstreams.close();
    },
  };
};
