import type { View } from "../core/view.ts";
import { followAgreed } from "../heads/followHeads.ts";
import { noHead } from "../heads/requestViews.ts";
import { CommittedBlocks, onlyCommitted } from "../methods/committedBlocks.ts";
import type { Handlers } from "../methods/handlers.ts";
import { type InternalCallOptions, internalCall } from "../methods/internalCall.ts";
import { PendingTransactions } from "../nodes/pendingTransactions.ts";
import type { ChainViews } from "../pending/chainViews.ts";
import { Subscriptions, type SubscriptionsOptions } from "../subscriptions/subscriptions.ts";
import type { ChainParts } from "./createReadPipeline.ts";

/** Creates the sources of proven events. */
const createProvenSource = (
  { config, upstreams, ownHashes }: ChainParts,
  internal: InternalCallOptions,
): NonNullable<SubscriptionsOptions["provenSource"]> => {
  const committed = new CommittedBlocks(ownHashes);
  return () => {
    const heads = followAgreed(upstreams.heads);
    const view = (): View => {
      const current = heads.current();
      if (current === undefined) {
        throw noHead(config.name);
      }
      return { heads: current };
    };
    return {
      heads: onlyCommitted(heads, committed),
      read: internalCall({ ...internal, view, needs: "proven" }),
    };
  };
};

/** Creates the subscriptions of one chain. They read through its methods. */
export const createChainSubscriptions = (parts: ChainParts, views: ChainViews, handlers: Handlers): Subscriptions => {
  const { config, shared, upstreams, signal } = parts;
  const { heads } = upstreams;
  const { maxBlocks: _, maxFilters: __, maxFilterBytes: maxBytesPerClient, ...limits } = config.logs;
  const view = () => views.view();
  const internal = { handlers, view, timeoutMs: config.upstream.timeoutMs, signal };
  return new Subscriptions({
    deliveries: shared.deliveries,
    chain: config.name,
    heads,
    pending: views,
    pool: new PendingTransactions({
      nodes: config.nodes.flatMap(({ wsUrl, headers }) => (wsUrl === undefined ? [] : [{ url: wsUrl, headers }])),
      signal,
    }),
    read: internalCall(internal),
    provenSource: createProvenSource(parts, internal),
    nodePending: {
      // It is asked only while there is a subscription to pending blocks or logs.
      isServing: () => {
        views.markPendingRead();
        return heads.current() !== undefined && view().pending?.blocksFrom === "node";
      },
      read: internalCall({ ...internal, atPending: true }),
    },
    limits,
    maxBytesPerClient,
    memory: shared.budget,
    maxSubscriptions: shared.server.maxSubscriptions,
    telemetry: shared.telemetry,
  });
};
