import { setTimeout as wait } from "node:timers/promises";
import { createMemory } from "./cache/memory.ts";
import { createRedis } from "./cache/redis.ts";
import type { Config } from "./config.ts";
import { createChain, type ServedChain } from "./createChain.ts";
import { createSpanSlots } from "./logs/spanSlots.ts";
import { drain } from "./server/drain.ts";
import type { Endpoint } from "./server/endpoint.ts";
import { createHttpServer } from "./server/http.ts";
import { createOpsServer } from "./server/ops.ts";
import { createWebSockets } from "./server/webSockets.ts";
import type { Telemetry } from "./telemetry.ts";

/** A running forebay: one process, one or more chains. */
export interface Forebay {
  readonly url: string;
  readonly opsUrl: string;
  readonly chains: readonly Pick<ServedChain, "name" | "upstreams">[];
  /** Every chain has its genesis and a first head. */
  readonly ready: Promise<void>;
  /** Settles only by rejecting: the process cannot go on (a node of another chain). */
  readonly failed: Promise<never>;
  /** Architecture.md, server: unready at once, requests in flight end, then everything is closed. */
  drain(): Promise<void>;
  /** At once. */
  close(): Promise<void>;
}

const urlOf = (host: string, port: number): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;

/** Opens the ports and starts to follow the nodes. Rejects where a port is taken. */
export const createForebay = async (config: Config, telemetry: Telemetry): Promise<Forebay> => {
  const { server, cache } = config;
  const { log, metrics, registry } = telemetry;
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});

  const memory = createMemory({ maxBytes: cache.memoryBytes, telemetry });
  const redis =
    cache.redis === undefined
      ? undefined
      : createRedis({ url: cache.redis, timeoutMs: cache.redisTimeoutMs, telemetry });
  const logSlots = createSpanSlots({ maxSpans: config.server.logSpans });
  const webSockets = createWebSockets({
    ...server,
    metrics,
    onError: (error, requestId) => log.warn({ err: error, requestId }, "a WebSocket message was not answered"),
  });
  const chains = config.chains.map((chain) =>
    createChain(chain, {
      memory,
      redis,
      telemetry,
      server,
      logSlots,
      webSockets,
      bypassHeader: cache.bypassHeader?.toLowerCase(),
      onFatal: failure.reject,
    }),
  );

  const routes = new Map<string, Endpoint>();
  for (const [index, { name, endpoint }] of chains.entries()) {
    if (index === 0 && chains.length === 1) routes.set("/", endpoint);
    routes.set(`/${name}`, endpoint);
    const { chainId } = config.chains[index] ?? {};
    if (chainId !== undefined) routes.set(`/${chainId}`, endpoint);
  }

  let draining = false;
  const known = new Set<string>();
  const ready = Promise.all(
    chains.map(async ({ name, endpoint, upstreams, ready: started }) => {
      await started;
      known.add(name);
      routes.set(`/${upstreams.genesis.chainId}`, endpoint);
    }),
  ).then(() => {});
  // Closing before the first head is no failure.
  ready.catch((error: unknown) => {
    if (!draining) failure.reject(error);
  });

  const about = (): string =>
    JSON.stringify({
      name: "forebay",
      about: "JSON-RPC by POST and WebSocket",
      chains: chains.map(({ name, upstreams }) => ({
        name,
        path: chains.length === 1 ? "/" : `/${name}`,
        ...(known.has(name) && { chainId: Number(upstreams.genesis.chainId) }),
      })),
    });

  const http = await createHttpServer({
    ...server,
    routes,
    metrics,
    about,
    onError: (error, requestId) => log.warn({ err: error, requestId }, "a request broke"),
  });
  const ops = await createOpsServer({
    host: server.opsHost,
    port: server.opsPort,
    registry,
    ready: () => known.size === chains.length && !draining,
    onError: (error) => log.error({ err: error }, "metrics could not be collected"),
  });

  const closeServers = async (timeoutMs: number): Promise<void> => {
    await Promise.all([http.close(timeoutMs), webSockets.close(timeoutMs)]);
  };
  const closeRest = async (): Promise<void> => {
    await Promise.all(chains.map((chain) => chain.close()));
    await redis?.close();
    await ops.close();
  };
  return {
    url: urlOf(server.host, http.port),
    opsUrl: urlOf(server.opsHost, ops.port),
    chains,
    ready,
    failed: failure.promise,
    drain: async () => {
      await drain({
        server: { ...http, close: closeServers },
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
