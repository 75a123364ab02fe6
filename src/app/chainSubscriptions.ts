import { followAgreed } from "../heads/followHeads.ts";
import { sealedView } from "../heads/requestViews.ts";
import { CommittedBlocks, onlyCommitted } from "../methods/committedBlocks.ts";
import type { Handlers } from "../methods/handlers.ts";
import { type InternalCallOptions, internalCall } from "../methods/internalCall.ts";
import { PendingTransactions } from "../nodes/pendingTransactions.ts";
import type { Pending } from "../pending/pending.ts";
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
    return {
      heads: onlyCommitted(heads, committed),
      read: internalCall({ ...internal, view: () => sealedView(config.name, heads), needs: "proven" }),
    };
  };
};

/** Creates the subscriptions of one chain. They read through its methods. */
export const createChainSubscriptions = (parts: ChainParts, pending: Pending, handlers: Handlers): Subscriptions => {
  const { config, shared, upstreams, signal } = parts;
  const { heads } = upstreams;
  const { maxBlocks: _, maxFilters: __, maxFilterBytes: maxBytesPerClient, ...limits } = config.logs;
  const view = () => pending.view();
  const internal = { handlers, view, timeoutMs: config.upstream.timeoutMs, signal };
  return new Subscriptions({
    deliveries: shared.deliveries,
    chain: config.name,
    heads,
    pending,
    pool: new PendingTransactions({
      nodes: config.nodes.flatMap(({ wsUrl, headers }) => (wsUrl === undefined ? [] : [{ url: wsUrl, headers }])),
      signal,
    }),
    read: internalCall(internal),
    provenSource: createProvenSource(parts, internal),
    nodePending: {
      // It is asked only while there is a subscription to pending blocks or logs.
      isServing: () => {
        pending.markPendingRead();
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
