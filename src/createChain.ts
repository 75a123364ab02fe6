import { createAsk } from "./ask.ts";
import { createAbsent } from "./cache/absent.ts";
import { cached } from "./cache/cached.ts";
import { createKeyPrefix } from "./cache/key.ts";
import type { Memory } from "./cache/memory.ts";
import type { Redis } from "./cache/redis.ts";
import { createStore } from "./cache/store.ts";
import { formatData, type Hash, isData, parseData, ZERO_HASH } from "./chain/hex.ts";
import { keccak256 } from "./chain/keccak.ts";
import type { Answer, CallContext } from "./chain/source.ts";
import type { View } from "./chain/view.ts";
import type { ChainConfig, Config } from "./config.ts";
import type { Call } from "./jsonrpc/call.ts";
import { createDispatch } from "./jsonrpc/dispatch.ts";
import { unavailable } from "./jsonrpc/rpcError.ts";
import type { SpanSlots } from "./logs/spanSlots.ts";
import { splitLogs } from "./logs/splitLogs.ts";
import type { Chain } from "./methods/chain.ts";
import { createHandlers, methodLabel } from "./methods/handlers.ts";
import { createOutcomes } from "./outcomes.ts";
import { formatCacheStatus } from "./server/cacheStatus.ts";
import type { Endpoint, EndpointRequest } from "./server/endpoint.ts";
import { createPassthrough } from "./server/passthrough.ts";
import { createSubscriptions, type SocketContext } from "./server/subscriptions.ts";
import type { WebSockets } from "./server/webSockets.ts";
import type { Telemetry } from "./telemetry.ts";
import { deduplicated } from "./upstream/deduplicated.ts";
import { createPendingTransactions } from "./upstream/pendingTransactions.ts";
import { createUpstreams, type Upstreams } from "./upstream/upstreams.ts";

/** What all chains of the process share. */
export interface Shared {
  readonly memory: Memory;
  readonly redis: Redis | undefined;
  readonly logSlots: SpanSlots;
  readonly webSockets: WebSockets;
  readonly telemetry: Telemetry;
  readonly server: Config["server"];
  readonly bypassHeader: string | undefined;
  /** A node turned out to be of another chain after the start. */
  onFatal(error: Error): void;
}

/** One chain behind its endpoint. */
export interface ServedChain {
  readonly name: string;
  readonly upstreams: Upstreams;
  readonly endpoint: Endpoint;
  close(): Promise<void>;
}

/** The prefix of one chain's keys, made anew only where the chain began anew. */
const createPrefixes = () => {
  let last: { readonly hash: Hash; readonly prefix: string } = { hash: ZERO_HASH, prefix: "" };
  return ({ chainId, hash }: Upstreams["genesis"]): string => {
    if (last.hash !== hash) last = { hash, prefix: createKeyPrefix(chainId, hash) };
    return last.prefix;
  };
};

export const createChain = (config: ChainConfig, shared: Shared): ServedChain => {
  const { name } = config;
  const { telemetry, server } = shared;
  const { log } = telemetry;
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
      onFatal: shared.onFatal,
      ...(config.upstream.hedge && { hedge: config.upstream.hedge }),
      ...(config.chainId !== undefined && { chainId: config.chainId }),
      ...(config.blockTimeMs !== undefined && { blockTimeMs: config.blockTimeMs }),
    },
    telemetry,
  );
  const prefixOf = createPrefixes();
  const stored = {
    get prefix() {
      return prefixOf(upstreams.genesis);
    },
    memory: shared.memory,
    ...(shared.redis && { redis: shared.redis }),
  };
  const absent = createAbsent();

  const reads = cached(deduplicated(upstreams), {
    chain: name,
    get prefix() {
      return stored.prefix;
    },
    memory: shared.memory,
    absent,
    telemetry,
    ...(shared.redis && { redis: shared.redis }),
  });
  const { maxBlocks, ...logLimits } = config.logs;
  const chain: Chain = {
    reads,
    nodes: upstreams,
    heads: upstreams.heads,
    logs: splitLogs({
      chain: name,
      nodes: upstreams.nodes,
      store: createStore(stored),
      slots: shared.logSlots,
      spansPerNode: ({ name: node }) =>
        config.nodes.find((_, index) => upstreams.nodes[index]?.name === node)?.logSpans ?? 1,
      maxResponseBytes,
      telemetry,
    }),
    logLimits: { ...logLimits, maxBlocks: maxBlocks === "none" ? undefined : maxBlocks },
    accepted: (raw) => {
      if (isData(raw)) absent.expect([formatData(keccak256(parseData(raw)))]);
    },
  };
  const view = (): View => {
    const heads = upstreams.heads.current();
    if (heads === undefined) throw unavailable(`chain "${name}": no node has told its head yet`);
    return { heads };
  };

  const handlers = createHandlers(chain, new Set(config.allowNamespaces));
  const rules = {
    forward: handlers.forward,
    maxBatch: server.maxBatch,
    maxResponseBytes,
    onOutcome: createOutcomes(name, methodLabel, telemetry.metrics),
    onError: (error: unknown, { method }: Call) => log.error({ err: error, chain: name, method }, "a call failed"),
  };
  const dispatch = createDispatch<CallContext, Answer>({ ...rules, lookup: handlers.lookup });
  const contextOf = (request: EndpointRequest): CallContext => ({
    view: view(),
    deadlineMs: performance.now() + config.upstream.timeoutMs,
    caller: request.caller,
    fresh: shared.bypassHeader !== undefined && request.headers[shared.bypassHeader] !== undefined,
    get signal() {
      return request.signal;
    },
  });

  const ending = new AbortController();
  const asking = { handlers, timeoutMs: config.upstream.timeoutMs, signal: ending.signal };
  const subscriptions = createSubscriptions({
    chain: name,
    heads: upstreams.heads,
    pool: createPendingTransactions({
      nodes: config.nodes.flatMap(({ wsUrl, headers }) => (wsUrl === undefined ? [] : [{ url: wsUrl, headers }])),
      signal: ending.signal,
    }),
    ask: createAsk({ ...asking, view }),
    nodePending: {
      isServing: () => upstreams.heads.current() !== undefined && view().pending?.blocksFrom === "node",
      ask: createAsk({ ...asking, view, atPending: true }),
    },
    limits: logLimits,
    maxSubscriptions: server.maxSubscriptions,
    telemetry,
  });
  const overSocket = createDispatch<SocketContext, Answer>({
    ...rules,
    lookup: (method) => subscriptions.lookup(method) ?? handlers.lookup(method),
  });
  const passthrough =
    config.passthrough === undefined
      ? undefined
      : createPassthrough({
          target: config.passthrough,
          timeoutMs: config.upstream.timeoutMs,
          onError: (error) => log.warn({ err: error, chain: name }, "passing through failed"),
        });

  const endpoint: Endpoint = {
    ...(passthrough && { passthrough }),
    handle: async (body, request) => {
      upstreams.heads.touch();
      const { replies, ...result } = await dispatch(body, contextOf(request));
      const pending = replies.find((reply) => reply.pending !== undefined)?.pending;
      return { ...result, cacheStatus: formatCacheStatus(replies), pending };
    },
    upgrade: (request, socket, head) =>
      shared.webSockets.accept(request, socket, head, async (body, message) => {
        upstreams.heads.touch();
        const { subscriber, onAnswered, signal } = message;
        return overSocket(body, { ...contextOf(message), subscriber, onAnswered, signal });
      }),
  };
  return {
    name,
    upstreams,
    endpoint,
    close: async () => {
      ending.abort();
      subscriptions.close();
      passthrough?.close();
      await upstreams.close();
    },
  };
};
