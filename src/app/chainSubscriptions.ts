import { type Caller, ownContext } from "../core/context.ts";
import type { FollowedHeads } from "../core/heads.ts";
import type { View } from "../core/view.ts";
import { followAgreed, followOnly } from "../heads/followHeads.ts";
import { noHead } from "../heads/requestViews.ts";
import { createCall } from "../jsonrpc/call.ts";
import { readWhole } from "../jsonrpc/response.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { CommittedBlocks } from "../methods/committedBlocks.ts";
import type { Handlers } from "../methods/handlers.ts";
import { PendingTransactions } from "../nodes/pendingTransactions.ts";
import type { ChainViews } from "../pending/chainViews.ts";
import { Subscriptions, type SubscriptionsOptions } from "../subscriptions/subscriptions.ts";
import type { ChainParts } from "./chainParts.ts";

interface InternalCallOptions {
  readonly handlers: Handlers;
  /** Returns the current view. Throws until a node has reported a head. */
  view(): View;
  /** Reads pending blocks too. Otherwise only sealed blocks are read, even if a pending block has the same hash. */
  readonly atPending?: true;
  /** Only proven answers are returned. */
  readonly requiresProof?: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Creates the call function of subscriptions. Its calls are handled like a client's: by the method table, through the
 * cache.
 * It returns the JSON text of the result, and rejects with RpcError.
 */
const internalCall =
  ({ handlers, view, atPending, requiresProof = false, timeoutMs, signal }: InternalCallOptions) =>
  async (method: string, params: readonly unknown[], caller?: Caller): Promise<Uint8Array> => {
    const handle = handlers.lookup(method);
    if (handle === undefined) {
      throw new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not in the method table`);
    }
    const deadlineMs = performance.now() + timeoutMs;
    const actual = view();
    const current = atPending ? actual : { heads: actual.heads };
    const context = ownContext("subscriptions", current, { signal, deadlineMs, caller, requiresProof });
    const { body } = await handle(createCall(method, params), context);
    return readWhole(body);
  };

/** Leaves out blocks to which the agreed head does not commit. Subscribers are told that they missed some. */
const onlyCommitted = (heads: FollowedHeads, agreed: FollowedHeads, committed: CommittedBlocks): FollowedHeads =>
  followOnly(heads, (block) => {
    const current = agreed.current();
    return current !== undefined && (block.hash === current.latest.hash || committed.has(current, block));
  });

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
      heads: onlyCommitted(heads, heads, committed),
      read: internalCall({ ...internal, view, requiresProof: true }),
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
