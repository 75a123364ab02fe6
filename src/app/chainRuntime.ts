import type { MemoryStore } from "../cache/memoryStore.ts";
import type { RedisStore } from "../cache/redisStore.ts";
import type { ChainConfig, Config } from "../config/schema.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import { formatCacheStatus } from "../http/cacheStatus.ts";
import { type Endpoint, type EndpointRequest, readTraceparent } from "../http/endpoint.ts";
import { createPassThroughHandler } from "../http/passThroughHandler.ts";
import type { Call } from "../jsonrpc/call.ts";
import { createDispatch, type Outcome } from "../jsonrpc/dispatch.ts";
import type { FairScheduler } from "../limits/fairScheduler.ts";
import { splitLogs } from "../logs/splitLogs.ts";
import { createHandlers, methodLabel } from "../methods/handlers.ts";
import type { Chain } from "../methods/method.ts";
import { pendingModeOfError } from "../methods/pendingModeErrors.ts";
import { receiptsOf } from "../methods/receiptsOf.ts";
import { createPendingTransactions } from "../nodes/pendingTransactions.ts";
import { createLocalFilters } from "../subscriptions/localFilters.ts";
import { createFilters } from "../subscriptions/polledFilters.ts";
import { createSharedFilters } from "../subscriptions/sharedFilters.ts";
import { createSubscriptions, type SocketContext } from "../subscriptions/subscriptions.ts";
import { createCallLog } from "../telemetry/callLog.ts";
import { createCallMetrics } from "../telemetry/callMetrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { VerifyPool } from "../verification/pool.ts";
import type { WebSockets } from "../websocket/webSocketServer.ts";
import { createPendingViews, noHead, type PendingViews } from "./createPendingViews.ts";
import { createReadPipeline } from "./createReadPipeline.ts";
import { internalCall } from "./internalCall.ts";
import { createUpstreams, type Upstreams } from "./upstreams.ts";

/** What all chains of the process share. */
export interface Shared {
  readonly memory: MemoryStore;
  readonly redis: RedisStore | undefined;
  readonly logSlots: FairScheduler;
  readonly webSockets: WebSockets;
  /** Threads that verify answers. */
  readonly verifyPool: VerifyPool;
  readonly telemetry: Telemetry;
  readonly server: Config["server"];
  readonly bypassHeader: string | undefined;
  /** A node is suspended because it is of another chain. */
  onWrongChain(error: Error): void;
}

/** What a context holds of who asks. */
type Asker = Pick<RequestContext, "clientId" | "requestId" | "authorize" | "signal">;

/** One chain behind its endpoint. */
export interface ServedChain {
  readonly name: string;
  readonly upstreams: Upstreams;
  readonly views: Pick<PendingViews, "view" | "flashblocks">;
  /** Genesis, first head and rules are known. Rejects only if it is closed before. */
  readonly ready: Promise<void>;
  readonly endpoint: Endpoint;
  close(): Promise<void>;
}

export const createChainRuntime = (config: ChainConfig, shared: Shared): ServedChain => {
  const { name } = config;
  const { telemetry, server } = shared;
  const { log } = telemetry;
  telemetry.series.beginChain({
    chain: name,
    nodes: config.nodes.map((node, index) => node.name ?? `node${index + 1}`),
    parts: new Set(config.pending.feeds.length > 0 ? ["feed"] : []),
  });
  const maxResponseBytes = server.maxResponseBytes === "none" ? Number.POSITIVE_INFINITY : server.maxResponseBytes;
  const upstreams = createUpstreams(
    {
      chain: name,
      nodes: config.nodes,
      finality: config.finality,
      breaker: config.upstream.breaker,
      attempts: config.upstream.attempts,
      maxResponseBytes,
      methodLabel,
      onWrongChain: shared.onWrongChain,
      verify: config.verify,
      checksOff: config.quirks.anvilDepositNonce ? ["depositReceipts"] : [],
      verifyPool: shared.verifyPool,
      ...(config.upstream.hedge && { hedge: config.upstream.hedge }),
      ...(config.chainId !== undefined && { chainId: config.chainId }),
      ...(config.blockTimeMs !== undefined && { blockTimeMs: config.blockTimeMs }),
    },
    telemetry,
  );
  const ending = new AbortController();
  const kept = createReadPipeline(config, shared, upstreams, ending.signal);
  const { reads, store, absent, runScript } = kept;
  const views = createPendingViews(config, upstreams, kept, telemetry);
  const { maxBlocks, maxFilters: maxPerClient, ...logLimits } = config.logs;
  const logs = splitLogs({
    chain: name,
    nodes: upstreams.nodes,
    store,
    slots: shared.logSlots,
    spansPerNode: ({ name: node }) =>
      config.nodes.find((_, index) => upstreams.nodes[index]?.name === node)?.logSpans ?? 1,
    maxResponseBytes,
    verification: { verifier: upstreams.verifier, receiptsOf: receiptsOf(reads) },
    telemetry,
  });
  const chain: Chain = {
    get chainId() {
      return upstreams.genesis.chainId;
    },
    reads,
    nodes: upstreams,
    heads: upstreams.heads,
    logs,
    filters: createFilters({
      logs,
      local: createLocalFilters({ maxPerClient }),
      shared: runScript && createSharedFilters({ maxPerClient, run: runScript }),
      onLocal: (err) => log.debug({ err, chain: name }, "a new filter is not shared with other replicas"),
    }),
    logLimits: { ...logLimits, maxBlocks: maxBlocks === "none" ? undefined : maxBlocks },
    get execution() {
      return config.simulate.enabled ? views.execution : undefined;
    },
    pendingNumber: config.simulate.pendingNumber,
    askNodeNonce: config.pending.askNodeNonce,
    advanceNonce: views.advanceNonce,
    subscribe: views.subscribe,
    accepted: (raw) => {
      const hash = views.recordSubmitted(raw);
      if (hash) absent.expectTransactions([hash]);
    },
  };

  const handlers = createHandlers(chain, new Set(config.allowNamespaces));
  const count = createCallMetrics(name, methodLabel, telemetry.metrics);
  const tell = createCallLog(name, log);
  const rules = {
    maxBatch: server.maxBatch,
    maxResponseBytes,
    authorize: ({ method }: Call, { authorize }: Asker) => authorize?.(method),
    onOutcome: (outcome: Outcome<Asker, RpcResponse>) => {
      count(outcome);
      tell(outcome);
    },
    onError: (error: unknown, { method }: Call) => log.error({ err: error, chain: name, method }, "a call failed"),
  };
  const { lookup, forward } = handlers;
  const dispatch = createDispatch<RequestContext, RpcResponse>({ ...rules, lookup, forward });
  /** While no node has told its head there is no view to answer from, but each call has its own id. */
  const beforeHead = createDispatch<Asker, RpcResponse>({
    ...rules,
    lookup: () => undefined,
    forward: async () => {
      throw noHead(name);
    },
  });
  const hasHead = (): boolean => upstreams.heads.current() !== undefined;
  const { bypassHeader } = shared;
  const contextOf = (request: EndpointRequest): RequestContext => ({
    view: views.view(),
    signal: request.signal,
    deadlineMs: performance.now() + config.upstream.timeoutMs,
    clientId: request.clientId,
    bypassCache: bypassHeader !== undefined && request.headers[bypassHeader] !== undefined,
    requestId: request.requestId,
    traceparent: readTraceparent(request.headers),
    authorize: request.authorize,
  });

  const { view } = views;
  const asking = { handlers, view, timeoutMs: config.upstream.timeoutMs, signal: ending.signal };
  const subscriptions = createSubscriptions({
    chain: name,
    heads: upstreams.heads,
    pending: views,
    pool: createPendingTransactions({
      nodes: config.nodes.flatMap(({ wsUrl, headers }) => (wsUrl === undefined ? [] : [{ url: wsUrl, headers }])),
      signal: ending.signal,
    }),
    read: internalCall(asking),
    nodePending: {
      isServing: () => hasHead() && view().pending?.blocksFrom === "node",
      read: internalCall({ ...asking, atPending: true }),
    },
    limits: logLimits,
    maxSubscriptions: server.maxSubscriptions,
    telemetry,
  });
  const overSocket = createDispatch<SocketContext, RpcResponse>({
    ...rules,
    lookup: (method) => subscriptions.lookup(method) ?? lookup(method),
    forward,
  });
  const passthrough =
    config.passthrough === undefined
      ? undefined
      : createPassThroughHandler({
          target: config.passthrough,
          timeoutMs: config.upstream.timeoutMs,
          onError: (error) => log.warn({ err: error, chain: name }, "passing through failed"),
        });

  const endpoint: Endpoint = {
    ...(passthrough && { passthrough }),
    handle: async (body, request) => {
      upstreams.heads.markActive();
      const answered = await (hasHead() ? dispatch(body, contextOf(request)) : beforeHead(body, request));
      const { replies, errors, ...result } = answered;
      const told = replies.find(({ pending }) => pending !== undefined)?.pending;
      const pending = told ?? (errors.length > 0 ? pendingModeOfError(errors) : undefined);
      return { ...result, cacheStatus: formatCacheStatus(replies, errors.length), pending };
    },
    upgrade: (request, socket, head, { clientId, authorize }) =>
      shared.webSockets.accept(request, socket, head, async (body, message) => {
        upstreams.heads.markActive();
        const { subscriber, onAnswered, requestId, signal } = message;
        if (!hasHead()) return beforeHead(body, { requestId, clientId, authorize, signal });
        return overSocket(body, { ...contextOf({ ...message, clientId, authorize }), subscriber, onAnswered });
      }),
  };
  return {
    name,
    upstreams,
    views,
    ready: views.ready,
    endpoint,
    close: async () => {
      ending.abort();
      subscriptions.close();
      passthrough?.close();
      await views.close();
      await upstreams.close();
    },
  };
};
