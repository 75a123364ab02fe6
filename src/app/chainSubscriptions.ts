import type { ChainConfig } from "../config/schema.ts";
import type { Handlers } from "../methods/handlers.ts";
import { createPendingTransactions } from "../nodes/pendingTransactions.ts";
import { createSubscriptions, type Subscriptions } from "../subscriptions/subscriptions.ts";
import type { ClientViews } from "./chainSources.ts";
import { internalCall } from "./internalCall.ts";
import type { Shared } from "./shared.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ChainSubscriptionsOptions {
  readonly config: ChainConfig;
  readonly shared: Pick<Shared, "server" | "budget" | "telemetry">;
  readonly upstreams: Upstreams;
  readonly views: ClientViews;
  readonly handlers: Handlers;
  readonly signal: AbortSignal;
}

/** Creates the subscriptions of one chain. They read through its methods. */
export const createChainSubscriptions = (options: ChainSubscriptionsOptions): Subscriptions => {
  const { config, shared, upstreams, views, handlers, signal } = options;
  const { maxBlocks: _, maxFilters: __, maxFilterBytes: maxBytesPerClient, ...limits } = config.logs;
  const view = () => views.view();
  const internal = { handlers, view, timeoutMs: config.upstream.timeoutMs, signal };
  return createSubscriptions({
    chain: config.name,
    heads: upstreams.heads,
    pending: views,
    pool: createPendingTransactions({
      nodes: config.nodes.flatMap(({ wsUrl, headers }) => (wsUrl === undefined ? [] : [{ url: wsUrl, headers }])),
      signal,
    }),
    read: internalCall(internal),
    nodePending: {
      isServing: () => upstreams.heads.current() !== undefined && view().pending?.blocksFrom === "node",
      read: internalCall({ ...internal, atPending: true }),
    },
    limits,
    maxBytesPerClient,
    memory: shared.budget,
    maxSubscriptions: shared.server.maxSubscriptions,
    telemetry: shared.telemetry,
  });
};
