import { NegativeCache } from "../cache/negativeCache.ts";
import type { ChainCopy, MainChannel } from "../cluster/chainCopy.ts";
import { CopiedIdentity } from "../cluster/copiedIdentity.ts";
import type { MainLink } from "../cluster/mainLink.ts";
import { createRemoteExecution } from "../cluster/remoteExecution.ts";
import { createRemoteFilters } from "../cluster/remoteFilters.ts";
import { RemoteState } from "../cluster/remoteState.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { BlockId } from "../core/heads.ts";
import { SenderCache } from "../evm/senders/senderCache.ts";
import { createRecentFlashblocks } from "../feed/recentFlashblocks.ts";
import { parseSubmitted } from "../pending/submittedTransaction.ts";
import { readableBlocks } from "../state/store/followedBlocks.ts";
import type { ChainSources, ClientViews } from "./chainSources.ts";
import { createReadPipeline } from "./createReadPipeline.ts";
import { createChainUpstreams } from "./followedSources.ts";
import { chainKey } from "./processShare.ts";
import type { Shared } from "./shared.ts";
import type { FollowedChain } from "./upstreams.ts";

/** The sources of a chain that the main process follows. */
export interface ServingSources extends ChainSources {
  /** Resolves when the first view is known, or if the main process has none yet. */
  readonly attached: Promise<void>;
}

const createViews = (key: string, copy: ChainCopy, link: MainLink, close: () => void): ClientViews => {
  const senders = new SenderCache();
  const { channel } = link;
  const execution = createRemoteExecution(key, channel);
  return {
    ready: copy.ready,
    view: () => copy.view(),
    get execution() {
      return copy.info.executes ? execution : undefined;
    },
    flashblocks: createRecentFlashblocks(),
    subscribe: (listener) => copy.subscribeViews(listener),
    recordSubmitted: (raw) => {
      channel.notify("submit", { chain: key, raw });
      return parseSubmitted(raw, senders);
    },
    advanceNonce: (sender, nonce) => channel.call("advanceNonce", { chain: key, sender, nonce }),
    close: async () => close(),
  };
};

/** Informs the other serving processes of each transaction that exists. */
class RelayedNegativeCache extends NegativeCache {
  readonly #chain: string;
  readonly #main: MainChannel;

  constructor(chain: string, main: MainChannel) {
    super();
    this.#chain = chain;
    this.#main = main;
  }

  override expectTransactions(hashes: Iterable<string>, block?: BlockId): void {
    const list = [...hashes];
    super.expectTransactions(list, block);
    this.#main.notify("expect", { chain: this.#chain, hashes: list, block });
  }

  /** Takes a transaction of another process. */
  addRelayed(hashes: Iterable<string>, block: BlockId | undefined): void {
    super.expectTransactions(hashes, block);
  }
}

/** Creates the sources of a chain in a serving process: its own nodes and cache, and the views of the main process. */
export const createServingSources = (
  config: ChainConfig,
  shared: Shared,
  signal: AbortSignal,
  link: MainLink,
): ServingSources => {
  const key = chainKey(config);
  const { log, metrics } = shared.telemetry;
  const negativeCache = new RelayedNegativeCache(key, link.channel);
  const copy = link.createCopy({
    chain: key,
    onNodes: (facts) => identity.apply(facts),
    onStateDropped: () => state.drop(),
    onExpected: ({ hashes, block }) => negativeCache.addRelayed(hashes, block),
    onError: (err) => log.error({ err, chain: config.name }, "a listener to heads failed"),
  });
  const state = new RemoteState({
    chain: key,
    main: link.channel,
    maxReadable: () => readableBlocks(upstreams.heads.blockTimeMs),
    onHit: (method) => metrics.stateLookups.inc({ chain: config.name, method, outcome: "hit" }),
  });
  const identity = new CopiedIdentity({ nodes: () => upstreams.nodes, info: () => copy.info, signal });
  const followed: FollowedChain = {
    heads: copy,
    ready: copy.ready,
    get genesis() {
      return { chainId: copy.info.chainId, hash: copy.info.genesis };
    },
    verifyIdentity: (node) => identity.verify(node),
  };
  const upstreams = createChainUpstreams(config, shared, followed);
  const pipeline = createReadPipeline(config, { ...shared, negativeCache }, upstreams, signal);
  return {
    upstreams,
    pipeline,
    views: createViews(key, copy, link, () => link.remove(key)),
    state: {
      get reads() {
        return copy.info.followsState ? state.reads : undefined;
      },
      get callCache() {
        return copy.info.answersCalls ? state.callCache : undefined;
      },
    },
    filters: createRemoteFilters(key, link.channel),
    gate: copy.gate,
    forwarded: { list: [] },
    attached: copy.attach().then(() => identity.confirm()),
    close: async () => {
      link.remove(key);
      await upstreams.close();
    },
  };
};
