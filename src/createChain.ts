import { beginChainSeries } from "./beginSeries.ts";
import { createAbsent } from "./cache/absent.ts";
import { cached } from "./cache/cached.ts";
import { createKeyPrefix } from "./cache/key.ts";
import type { Memory } from "./cache/memory.ts";
import type { Redis } from "./cache/redis.ts";
import { createStore } from "./cache/store.ts";
import { type Hash, ZERO_HASH } from "./chain/hex.ts";
import type { Answer, CallContext } from "./chain/source.ts";
import type { ChainConfig, Config } from "./config.ts";
import { createViews, type Views } from "./createViews.ts";
import { createDispatch } from "./jsonrpc/dispatch.ts";
import type { SpanSlots } from "./logs/spanSlots.ts";
import { splitLogs } from "./logs/splitLogs.ts";
import type { Chain } from "./methods/chain.ts";
import { createHandlers, methodLabel } from "./methods/handlers.ts";
import { createOutcomes } from "./outcomes.ts";
import { formatCacheStatus } from "./server/cacheStatus.ts";
import { createCallLog } from "./server/callLog.ts";
import { type Endpoint, readTraceparent } from "./server/endpoint.ts";
import { createPassthrough } from "./server/passthrough.ts";
import type { Telemetry } from "./telemetry.ts";
import { deduplicated } from "./upstream/deduplicated.ts";
import { createUpstreams, type Upstreams } from "./upstream/upstreams.ts";

/** What all chains of the process share. */
export interface Shared {
  readonly memory: Memory;
  readonly redis: Redis | undefined;
  readonly logSlots: SpanSlots;
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
  readonly views: Pick<Views, "view" | "flashblocks">;
  /** Genesis, first head and rules are known. Rejects where nodes are not of one chain. */
  readonly ready: Promise<void>;
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
  beginChainSeries(telemetry.metrics, config);
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
  const views = createViews(config, upstreams, telemetry);
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
    get execution() {
      return config.simulate.enabled ? views.execution : undefined;
    },
    pendingNumber: config.simulate.pendingNumber,
    accepted: (raw) => {
      const hash = views.accepted(raw);
      if (hash) absent.expect([hash]);
    },
  };

  const count = createOutcomes(name, methodLabel, telemetry.metrics);
  const tell = createCallLog(name, log);
  const dispatch = createDispatch<CallContext, Answer>({
    ...createHandlers(chain, new Set(config.allowNamespaces)),
    maxBatch: server.maxBatch,
    maxResponseBytes,
    permit: ({ method }, { permit }) => permit?.(method),
    onOutcome: (outcome) => {
      count(outcome);
      tell(outcome);
    },
    onError: (error, { method }) => log.error({ err: error, chain: name, method }, "a call failed"),
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
      const context: CallContext = {
        view: views.view(),
        deadlineMs: performance.now() + config.upstream.timeoutMs,
        caller: request.caller,
        permit: request.permit,
        requestId: request.requestId,
        traceparent: readTraceparent(request.headers),
        fresh: shared.bypassHeader !== undefined && request.headers[shared.bypassHeader] !== undefined,
        get signal() {
          return request.signal;
        },
      };
      const { replies, ...result } = await dispatch(body, context);
      const pending = replies.find((reply) => reply.pending !== undefined)?.pending;
      return { ...result, cacheStatus: formatCacheStatus(replies), pending };
    },
  };
  return {
    name,
    upstreams,
    views,
    ready: views.ready,
    endpoint,
    close: async () => {
      passthrough?.close();
      await views.close();
      await upstreams.close();
    },
  };
};
