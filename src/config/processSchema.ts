import { z } from "zod";
import { parseNetwork } from "../access/trustedProxies.ts";
import { count, lowerCaseName, milliseconds } from "./optionTypes.ts";

/** The options of the cache: `cache`. */
export const cacheSchema = z.strictObject({
  memoryBytes: z
    .number()
    .int()
    .nonnegative()
    .default(128 * 1024 * 1024)
    .describe("Size of the memory cache in bytes; 0 disables it"),
  redis: z.string().optional().describe("redis://, rediss://, redis+sentinel://h1,h2/name, redis+cluster://h1,h2"),
  redisTimeoutMs: milliseconds(50).describe("Deadline of Redis; a later response is a cache miss"),
  bypassHeader: z.string().optional().describe("Request header that bypasses the cache; none by default"),
});

/** The options of the ports: `server`. */
export const serverSchema = z.strictObject({
  host: z.string().default("127.0.0.1").describe("Address to listen on; 0.0.0.0 for all"),
  port: z.number().int().min(0).max(65_535).default(8545).describe("JSON-RPC over HTTP and WebSocket; 0 for any"),
  opsHost: z.string().default("127.0.0.1").describe("Address of the ops port"),
  opsPort: z.number().int().min(0).max(65_535).default(9545).describe("/metrics, /healthz, /readyz, /config"),
  processes: z
    .union([z.literal("auto"), count(1)])
    .default(1)
    .describe(
      "Processes that serve clients; `auto` for one per core. With more than one, another process follows the chains",
    ),
  keepAliveMs: milliseconds(75_000).describe("Idle time after which a connection is closed; above the load balancer's"),
  maxBodyBytes: count(5 * 1024 * 1024).describe("Maximum size of a request"),
  maxBatch: count(1_000).describe("Maximum of calls in one batch"),
  maxResponseBytes: z
    .union([count(150_000_000), z.literal("none")])
    .default(150_000_000)
    .describe("Maximum size of a response"),
  corsOrigins: z
    .union([z.literal("*"), z.array(z.string())])
    .default("*")
    .describe("Allowed origins of browsers"),
  maxConnectionsPerAddress: count(10_000).describe(
    "Maximum of connections of one address (IPv6: of one /64); those of `access.trustedProxies` are not counted",
  ),
  maxWebSockets: count(20_000).describe("Maximum of WebSocket connections"),
  maxWebSocketsPerAddress: count(5_000).describe("Maximum of WebSocket connections of one client address"),
  maxSubscriptions: count(1_000).describe("Maximum of subscriptions on one WebSocket connection"),
  webSocketBufferBytes: count(1024 * 1024).describe("Buffered bytes at which a slow reader is closed (1013)"),
  webSocketPingMs: count(30_000).describe("Time between pings; a connection without a pong is closed"),
  webSocketIdleMs: count(3_600_000).describe("A WebSocket without calls and subscriptions is closed after this time"),
  logSpans: count(32).describe("Maximum of block ranges in flight for log queries, for all chains together"),
  drainDelayMs: milliseconds(5_000).describe(
    "Time after SIGTERM in which requests are still accepted, so that load balancers notice",
  ),
  readiness: z
    .union([z.enum(["any", "all"]), z.array(lowerCaseName).min(1)])
    .default("any")
    .describe(
      "Chains that must be known before `/readyz` returns 200: `all`, a list of names, or `any` (all, or one after 10 s)",
    ),
  statusPage: z
    .boolean()
    .default(true)
    .describe("Whether `GET /` shows browsers a page with chains, names of nodes and traffic"),
  drainTimeoutMs: milliseconds(35_000).describe("Time after `drainDelayMs` for requests in flight"),
});

const methods = z.array(z.string().regex(/^[A-Za-z0-9_]+\*?$/, "a method's name, or its beginning and a *"));
const limit = z.strictObject({
  calls: count(100).describe("Maximum of calls in `seconds`; each item of a batch counts"),
  seconds: count(1).describe("Period of the limit, in seconds"),
});

/** The options of clients: `access`. */
export const accessSchema = z.strictObject({
  keys: z
    .array(
      z.strictObject({
        name: lowerCaseName.describe("Shown in logs"),
        sha256: z
          .string()
          .regex(/^[0-9a-f]{64}$/, "64 lower-case hex digits")
          .describe("SHA-256 of the key: `printf %s KEY | sha256sum`"),
        limit: limit.optional().describe("Replaces `limitPerKey` for this key"),
        allow: methods.optional().describe("The only allowed methods, e.g. `eth_*`"),
        deny: methods.default([]).describe("Forbidden methods"),
      }),
    )
    .refine((keys) => new Set(keys.map((key) => key.name)).size === keys.length, { error: "names must differ" })
    .default([])
    .describe("API keys. With at least one, every client needs a key: `x-api-key`, bearer token, or `/<chain>/<key>`"),
  limitPerKey: limit.optional().describe("Limit of each key without its own limit; none by default"),
  limitPerAddress: limit.optional().describe("Limit of each client address (IPv6: of each /64); none by default"),
  limitStore: z
    .enum(["memory", "redis"])
    .default("memory")
    .describe("Store of the counts: `memory` in each process, or `redis` (`cache.redis`) for all replicas"),
  allow: methods.optional().describe("The only methods that clients may call"),
  deny: methods.default([]).describe("Methods that no client may call"),
  trustedProxies: z
    .array(
      z.string().refine((text) => parseNetwork(text) !== undefined, { error: "an address or a network, 10.0.0.0/8" }),
    )
    .default([])
    .describe("Networks whose X-Forwarded-For is trusted"),
});
