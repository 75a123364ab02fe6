import { setTimeout as wait } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { createOpsServer } from "../admin/opsServer.ts";
import { statusPage } from "../admin/statusPage.ts";
import { createMemoryStore } from "../cache/memoryStore.ts";
import { createRedisStore } from "../cache/redisStore.ts";
import { formatMasked } from "../config/maskConfig.ts";
import type { Config } from "../config/schema.ts";
import { drain } from "../http/drain.ts";
import { createHttpServer, type HttpServer } from "../http/httpServer.ts";
import { createRequestLog } from "../http/requestLog.ts";
import { createFairScheduler } from "../limits/fairScheduler.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { VerifyThreads } from "../verification/pool.ts";
import { createWebSocketServer } from "../websocket/webSocketServer.ts";
import type { ServedChain } from "./chainRuntime.ts";
import { createChains } from "./chains.ts";
import { createAccessControl } from "./createAccessControl.ts";
import { createReadiness } from "./readiness.ts";
import { readVersion } from "./readVersion.ts";
import { createStatus } from "./statusReport.ts";
import { workerEntry } from "./workerEntry.ts";

/** A running forebay: one process, one or more chains. */
export interface Forebay {
  readonly url: string;
  readonly opsUrl: string;
  readonly chains: readonly Pick<ServedChain, "name" | "upstreams">[];
  /** Every chain has its genesis and a first head. */
  readonly ready: Promise<void>;
  /** Puts another configuration in force, or rejects with ConfigError and changes nothing. Ports and caches stay as they are. */
  reload(config: Config): Promise<void>;
  /** Architecture.md, server: unready at once, requests in flight end, then everything is closed. */
  drain(): Promise<void>;
  /** At once. */
  close(): Promise<void>;
}

const urlOf = (host: string, port: number): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;

/** `server.port`, `cache.redis` ...: what was opened once, and is not opened anew. */
const changedOptions = (before: Config, after: Config): readonly string[] =>
  (["server", "cache"] as const).flatMap((part) => {
    const old = new Map<string, unknown>(Object.entries(before[part]));
    const changed = Object.entries(after[part]).filter(([key, value]) => !isDeepStrictEqual(old.get(key), value));
    const gone = [...old.keys()].filter((key) => !(key in after[part]));
    return [...changed.map(([key]) => key), ...gone].map((key) => `${part}.${key}`);
  });

/** Opens the ports and starts to follow the nodes. Rejects where a port is taken. */
export const createForebay = async (config: Config, telemetry: Telemetry): Promise<Forebay> => {
  const { server, cache } = config;
  const { log, metrics, registry } = telemetry;
  telemetry.series.beginProcess(new Set(cache.redis === undefined ? [] : ["redis"]));

  const memory = createMemoryStore({ maxBytes: cache.memoryBytes, telemetry });
  const redis =
    cache.redis === undefined
      ? undefined
      : createRedisStore({ url: cache.redis, timeoutMs: cache.redisTimeoutMs, telemetry });
  const logSlots = createFairScheduler({ maxSpans: config.server.logSpans });
  const webSockets = createWebSocketServer({
    ...server,
    metrics,
    onError: (error, requestId) => log.warn({ err: error, requestId }, "a WebSocket message was not answered"),
  });
  const verifyPool = new VerifyThreads(workerEntry("verification"));
  const gate = createAccessControl(config, telemetry);
  let http: HttpServer | undefined;
  const chains = createChains({
    configs: config.chains,
    shared: {
      memory,
      redis,
      telemetry,
      server,
      logSlots,
      webSockets,
      verifyPool,
      bypassHeader: cache.bypassHeader?.toLowerCase(),
    },
    drainTimeoutMs: server.drainTimeoutMs,
    onRoutes: (routes) => http?.setRoutes(routes),
  });
  const { ready } = chains;
  let inForce = config;
  let draining = false;

  const about = (): string =>
    JSON.stringify({
      name: "forebay",
      about: "JSON-RPC by POST and WebSocket",
      chains: chains.current.map((chain) => ({
        name: chain.name,
        path: chains.current.length === 1 ? "/" : `/${chain.name}`,
        ...(chains.isKnown(chain) && { chainId: Number(chain.upstreams.genesis.chainId) }),
      })),
    });
  const readiness = createReadiness({
    rule: server.readiness,
    chains: () => chains.current,
    isKnown: chains.isKnown,
    isDraining: () => draining,
  });
  const status = createStatus({
    version: readVersion(),
    metrics,
    chains: () => chains.current,
    isDraining: () => draining,
  });

  http = await createHttpServer({
    ...server,
    routes: chains.routes,
    metrics,
    about,
    ...(server.statusPage && { page: statusPage(), status }),
    admit: gate.authenticate,
    onEnd: createRequestLog(log),
    onError: (error, requestId) => log.warn({ err: error, requestId }, "a request broke"),
  });
  const main = http;
  // What became known while the port was opened.
  main.setRoutes(chains.routes);
  const ops = await createOpsServer({
    host: server.opsHost,
    port: server.opsPort,
    registry,
    readiness: readiness.report,
    measure: () => {
      for (const served of chains.current) {
        const { name: chain, upstreams } = served;
        metrics.chainServing.set({ chain }, readiness.isServing(served) ? 1 : 0);
        const latest = upstreams.heads.current()?.latest;
        if (latest) metrics.headAgeSeconds.set({ chain }, Math.max(0, Date.now() / 1000 - Number(latest.timestamp)));
      }
    },
    config: () => formatMasked(inForce),
    onError: (error) => log.error({ err: error }, "metrics could not be collected"),
  });

  const closeServers = async (timeoutMs: number): Promise<void> => {
    await Promise.all([main.close(timeoutMs), webSockets.close(timeoutMs)]);
  };
  const closeRest = async (): Promise<void> => {
    await chains.close();
    await verifyPool.close();
    gate.close();
    await redis?.close();
    await ops.close();
  };
  return {
    url: urlOf(server.host, main.port),
    opsUrl: urlOf(server.opsHost, ops.port),
    get chains() {
      return chains.current;
    },
    ready,
    reload: async (next) => {
      const fixed = changedOptions(inForce, next);
      if (fixed.length > 0) log.warn({ options: fixed }, "these options change with a restart alone");
      await chains.replace(next.chains);
      gate.setRules(next.access);
      log.level = next.log.level;
      inForce = { ...next, server, cache };
    },
    drain: async () => {
      await drain({
        server: { ...main, close: closeServers },
        delay: () => wait(server.drainDelayMs),
        timeoutMs: server.drainTimeoutMs,
        markUnready: () => {
          draining = true;
        },
      });
      await closeRest();
    },
    close: async () => {
      draining = true;
      await closeServers(0);
      await closeRest();
    },
  };
};
