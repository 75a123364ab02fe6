import { z } from "zod";
import { parseNetwork } from "../access/clientAddress.ts";
import { PRICE_TABLES, type PriceTable } from "../access/providerUnits.ts";
import { DEFAULT_LIMIT } from "../access/rateLimits.ts";
import { MAX_CONFIRMATIONS } from "../heads/headsBehind.ts";
import { count, lowerCaseName, methodPattern, milliseconds, urlWith } from "./optionTypes.ts";

const MAX_DECIMALS = 18;
const MAX_PAYMENT_SECONDS = 86_400;

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, "an address: 0x and 40 hex digits");
/** Text, because a number of YAML is not exact. */
const price = z.string().regex(/^\d{1,18}(?:\.\d{1,24})?$/, 'tokens as a decimal number in quotes, such as "0.0001"');

const priceSchema = z
  .strictObject({
    default: price.optional().describe("Price of a call in tokens, in quotes; instead of `perUnit`"),
    perUnit: price
      .optional()
      .describe("Price of a provider unit; a call costs the units of its method (`usage.prices`)"),
    methods: z
      .record(methodPattern, price)
      .default({})
      .describe('Prices by method or `debug_*`; "0" for a free method. The longest match counts'),
  })
  .refine((prices) => (prices.default === undefined) !== (prices.perUnit === undefined), {
    error: "set either default or perUnit",
  });

const facilitatorSchema = z.strictObject({
  url: urlWith("http", "https").describe("Service that verifies and settles payments"),
  headers: z.record(z.string(), z.string()).default({}).describe("Headers of each request to it, for example its key"),
  timeoutMs: count(5_000).describe("Deadline of a verification; then 503, and nothing is charged"),
  settleTimeoutMs: count(30_000).describe("Deadline of a settlement; then 503, and the client may be charged"),
  maxConcurrent: count(100).describe("Paid requests at a time; more get 503, and nothing is charged"),
});

/** The options of payments: `access.payment`. */
const paymentSchema = z.strictObject({
  payTo: address.describe("Address that receives the payments"),
  network: z
    .templateLiteral(["eip155:", z.int().positive()])
    .describe("Chain of the token in the form of CAIP-2, such as eip155:8453"),
  asset: z.strictObject({
    address: address.describe("Token with transferWithAuthorization (EIP-3009), for example USDC"),
    name: z.string().min(1).describe("Name in the token's EIP-712 domain"),
    version: z.string().min(1).describe("Version in the token's EIP-712 domain"),
    decimals: z.int().min(0).max(MAX_DECIMALS).default(6).describe("Decimals of the token"),
  }),
  price: priceSchema,
  maxTimeoutSeconds: z
    .int()
    .positive()
    .max(MAX_PAYMENT_SECONDS)
    .default(120)
    .describe("Longest time for which a payment is valid, up to a day"),
  publicUrl: urlWith("http", "https")
    .optional()
    .describe("URL of this service in challenges; default: http:// and the Host header"),
  facilitator: facilitatorSchema,
  redis: z
    .string()
    .optional()
    .describe("Redis of the reservations, which the cache cannot fill; applies at a restart; default: `cache.redis`"),
});

const MIN_DISK_BYTES = 16 * 1024 * 1024;

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
  disk: z
    .union([z.enum(["auto", "always"]), z.literal(false)])
    .default("auto")
    .describe(
      "Whether cache entries are stored in `server.dataDir`: `auto` without Redis, and not of development nodes; `always`; false",
    ),
  diskBytes: z
    .number()
    .int()
    .min(MIN_DISK_BYTES)
    .default(2 * 1024 * 1024 * 1024)
    .describe("Size of the files in `server.dataDir`; the oldest entries are removed. At least 16 MiB"),
  bypassHeader: z.string().optional().describe("Request header that bypasses the cache; none by default"),
});

/** The options of the ports: `server`. */
export const serverSchema = z.strictObject({
  host: z.string().default("127.0.0.1").describe("Address to listen on; 0.0.0.0 for all"),
  port: z.number().int().min(0).max(65_535).default(8545).describe("JSON-RPC over HTTP and WebSocket; 0 for any"),
  opsHost: z.string().default("127.0.0.1").describe("Address of the ops port"),
  opsToken: z
    .string()
    .min(16)
    .optional()
    .describe(
      "Bearer token of `/config`, `/usage` and `POST /nodes/<chain>/<node>/cordon` on the ops port, at least 16 characters; default: none, and no node can be cordoned",
    ),
  opsPort: z.number().int().min(0).max(65_535).default(9545).describe("/metrics, /healthz, /readyz, /usage, /config"),
  dataDir: z
    .string()
    .min(1)
    .optional()
    .describe("Folder on a local disk for what survives a restart (docs/operate.md); none by default"),
  healthPath: z
    .string()
    .regex(/^\/[\w./-]+$/, "a path such as /healthz")
    .optional()
    .describe("Path on `port` that answers GET with 200 while the process is ready, else 503; none by default"),
  reusePort: z
    .boolean()
    .default(false)
    .describe("Whether other processes of this machine listen on `port` too; needs Linux and `cache.redis`"),
  keepAliveMs: milliseconds(75_000).describe("Idle time after which a connection is closed; above the load balancer's"),
  maxBodyBytes: count(5 * 1024 * 1024).describe("Maximum size of a request"),
  maxBatch: count(1_000).describe("Maximum of calls in one batch"),
  maxResponseBytes: z
    .union([z.int().positive(), z.literal("none")])
    .default(150_000_000)
    .describe("Maximum size of a response"),
  minViewWaitMs: milliseconds(500).describe(
    "Longest wait for the view that `x-forebay-min-view` of a request names; then -32000",
  ),
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
  webSocketBufferBytes: count(1024 * 1024).describe(
    "Unsent bytes at which a slow reader of events is closed (1013), and calls wait",
  ),
  writeTimeoutMs: milliseconds(30_000).describe(
    "Time after which a connection that reads nothing of a response is closed",
  ),
  memoryBudgetBytes: z
    .number()
    .int()
    .positive()
    .optional()
    .describe(
      "Bytes that requests may hold beside the caches; default: half of the memory that the caches leave, see docs/limits.md",
    ),
  webSocketPingMs: count(30_000).describe("Time between pings; a connection without the pong to a ping is closed"),
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
  drainTimeoutMs: milliseconds(35_000).describe(
    "Time after `drainDelayMs` for requests in flight; WebSockets close over half of it",
  ),
});

const isPriceTable = (name: string): name is PriceTable => name in PRICE_TABLES;

/** The options of prices and of the usage report: `usage`. */
export const usageSchema = z.strictObject({
  prices: z
    .enum(Object.keys(PRICE_TABLES).filter(isPriceTable))
    .default("alchemy")
    .describe("Price table in provider units (docs/usage.md); `calls`: one unit per call"),
  units: z
    .record(z.string(), z.number().nonnegative())
    .default({})
    .describe("Units of a call, by method or `debug_*`; replaces or adds entries of the price table"),
  topKeys: count(100).describe("Keys with series of their own in metrics; the others are summed as `other`"),
});

/** The options of tracing: `tracing`. */
export const tracingSchema = z.strictObject({
  endpoint: urlWith("http", "https")
    .optional()
    .describe("OTLP/HTTP endpoint of the receiver, such as http://collector:4318/v1/traces; default: as `OTEL_*` say"),
  sampleShare: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe("Share of calls without a parent that are recorded; default: as `OTEL_*` say, else all"),
});

const methods = z.array(methodPattern);
const limit = z.strictObject({
  calls: count(DEFAULT_LIMIT.calls).describe("Maximum of calls in `seconds`; each item of a batch counts"),
  seconds: count(DEFAULT_LIMIT.seconds).describe("Period of the limit, in seconds"),
});
const keyLimit = z.strictObject({
  calls: z
    .int()
    .positive()
    .optional()
    .describe(
      `Maximum of calls in \`seconds\`, instead of \`limitPerKey\`; default: ${DEFAULT_LIMIT.calls}, or with \`unitsPerDay\` alone \`limitPerKey\``,
    ),
  seconds: z.int().positive().optional().describe(`Period of \`calls\`, in seconds; default: ${DEFAULT_LIMIT.seconds}`),
  unitsPerDay: z
    .number()
    .positive()
    .optional()
    .describe("Maximum of units of calls to nodes on a UTC day, with all replicas (docs/usage.md); none by default"),
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
        chains: z
          .array(lowerCaseName)
          .optional()
          .describe("Names of the only chains that the key may use; default: all"),
        expires: z.iso
          .datetime({ offset: true })
          .optional()
          .describe("Time from which the key is refused, such as 2027-01-01T00:00:00Z"),
        limit: keyLimit.optional().describe("Limits of this key"),
        allow: methods.optional().describe("The only allowed methods, e.g. `eth_*`"),
        deny: methods.default([]).describe("Forbidden methods"),
        confirmations: z
          .int()
          .min(0)
          .max(MAX_CONFIRMATIONS)
          .default(0)
          .describe("Blocks between `latest` of this key and the head; such a key has no subscriptions"),
        require: z
          .literal("proven")
          .optional()
          .describe(
            "`proven`: only answers that are proven on an agreed head, or an error (docs/answers.md); default: any",
          ),
      }),
    )
    .refine((keys) => new Set(keys.map((key) => key.name)).size === keys.length, { error: "names must differ" })
    .default([])
    .describe("API keys. With at least one, every client needs a key: `x-api-key`, bearer token, or `/<chain>/<key>`"),
  jwt: z
    .strictObject({
      jwksUrl: urlWith("http", "https").describe("Public keys of the issuer, a JSON Web Key Set"),
      issuer: z.string().min(1).describe("Required claim `iss`"),
      audience: z.string().min(1).optional().describe("Required claim `aud`; any by default"),
      recheckMs: count(5 * 60_000).describe(
        "Time after which the issuer's keys are read and a token is verified again, also that of an open WebSocket",
      ),
    })
    .optional()
    .describe("JSON Web Tokens as bearer tokens, beside keys (docs/operate.md). With it, every client needs one"),
  payment: paymentSchema
    .optional()
    .describe("HTTP 402 (x402): clients without a key or token pay for each request (docs/payments.md)"),
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
