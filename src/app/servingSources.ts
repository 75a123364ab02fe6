import { createNegativeCache, type NegativeCache } from "../cache/negativeCache.ts";
import type { ChainCopy, MainChannel } from "../cluster/chainCopy.ts";
import type { NodeFacts } from "../cluster/chainProtocol.ts";
import type { MainLink } from "../cluster/mainLink.ts";
import { createRemoteExecution } from "../cluster/remoteExecution.ts";
import { createRemoteFilters } from "../cluster/remoteFilters.ts";
import { createRemoteState } from "../cluster/remoteState.ts";
import type { ChainConfig } from "../config/schema.ts";
import { SenderCache } from "../evm/senders/senderCache.ts";
import { createRecentFlashblocks } from "../feed/recentFlashblocks.ts";
import { readNodeIdentity } from "../heads/nodeIdentity.ts";
import type { IdentityResult } from "../nodes/identityGate.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { parseSubmitted } from "../pending/submittedTransaction.ts";
import { chainKey } from "./chainKey.ts";
import type { ChainSources, ClientViews } from "./chainSources.ts";
import { createReadPipeline } from "./createReadPipeline.ts";
import { createChainUpstreams } from "./followedSources.ts";
import type { Shared } from "./shared.ts";
import type { FollowedChain } from "./upstreams.ts";

/** The sources of a chain that the main process follows. */
export interface ServingSources extends ChainSources {
  /** Resolves when the first view is known, or if the main process has none yet. */
  readonly attached: Promise<void>;
}

/** Checks the chain of a node that may have been restarted. The main process decides whether the chain was reset. */
const createVerifyIdentity =
  (copy: ChainCopy, signal: AbortSignal) =>
  async (node: UpstreamNode): Promise<IdentityResult> => {
    try {
      const { chainId, genesis } = await readNodeIdentity(node, signal);
      const isSame = chainId === copy.info.chainId && genesis === copy.info.genesis;
      node.identified = isSame;
      return { kind: isSame ? "same" : "other" };
    } catch {
      // No response. The gate stays closed, and the next request checks again.
      return { kind: "unknown" };
    }
  };

const applyFacts = (nodes: readonly UpstreamNode[], facts: readonly NodeFacts[]): void => {
  for (const { name, identified, head } of facts) {
    const node = nodes.find((each) => each.name === name);
    if (node === undefined) {
      continue;
    }
    node.identified = identified;
    if (head !== undefined && node.headHash !== head.hash) {
      node.announce(head);
    }
  }
};

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
      return parseSubmitted(raw, senders)?.hash;
    },
    advanceNonce: (sender, nonce) => channel.call("advanceNonce", { chain: key, sender, nonce }),
    close: async () => close(),
  };
};

/** Informs the other serving processes of each transaction that exists. */
const relayed = (chain: string, cache: NegativeCache, main: MainChannel): NegativeCache => ({
  ...cache,
  expectTransactions: (hashes, block) => {
    const list = [...hashes];
    cache.expectTransactions(list, block);
    main.notify("expect", { chain, hashes: list, block });
  },
});

/** Creates the sources of a chain in a serving process: its own nodes and cache, and the views of the main process. */
export const createServingSources = (
  config: ChainConfig,
  shared: Shared,
  signal: AbortSignal,
  link: MainLink,
): ServingSources => {
  const key = chainKey(config);
  const { log } = shared.telemetry;
  const negativeCache = createNegativeCache();
  const copy = link.createCopy({
    chain: key,
    onNodes: (facts) => applyFacts(upstreams.nodes, facts),
    onExpected: ({ hashes, block }) => negativeCache.expectTransactions(hashes, block),
    onError: (err) => log.error({ err, chain: config.name }, "a listener to heads failed"),
  });
  const followed: FollowedChain = {
    heads: copy,
    ready: copy.ready,
    get genesis() {
      return { chainId: copy.info.chainId, hash: copy.info.genesis };
    },
    verifyIdentity: createVerifyIdentity(copy, signal),
  };
  const upstreams = createChainUpstreams(config, shared, followed);
  const pipeline = createReadPipeline(
    config,
    { ...shared, negativeCache: relayed(key, negativeCache, link.channel) },
    upstreams,
    signal,
  );
  const state = createRemoteState(key, link.channel);
  return {
    upstreams,
    pipeline,
    views: createViews(key, copy, link, () => link.remove(key)),
    state: {
      get reads() {
        return copy.info.followsState ? state : undefined;
      },
    },
    filters: createRemoteFilters(key, link.channel),
    gate: copy.gate,
    attached: copy.attach(),
    close: async () => {
      link.remove(key);
      await upstreams.close();
    },
  };
};
