import { z } from "zod";
import { parseNetwork } from "../access/trustedProxies.ts";
import { ETHEREUM_FORKS, OP_FORKS } from "../ethereum/rules.ts";
import { ENGINE_KINDS } from "../evm/engineKind.ts";

const milliseconds = (fallback: number) => z.number().int().nonnegative().default(fallback);
const count = (fallback: number) => z.number().int().positive().default(fallback);
const name = z.string().regex(/^[a-z][a-z0-9-]*$/, "lower-case letters, digits and dashes, a letter first");
const url = (...protocols: string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol.slice(0, -1)), {
    error: `a URL that begins with ${protocols.map((protocol) => `${protocol}://`).join(" or ")}`,
  });

const node = z.strictObject({
  name: name.optional().describe("Shown in metrics and headers; default: node1, node2 ..."),
  url: url("http", "https").describe("HTTP endpoint; may contain credentials, is never logged"),
  wsUrl: url("ws", "wss").optional().describe("WebSocket endpoint for new heads"),
  headers: z.record(z.string(), z.string()).default({}).describe("Sent with every request to this node"),
  requestsPerSecond: z.number().positive().optional().describe("Budget of calls a second; none by default"),
  concurrency: count(256).describe("Maximum of requests in flight"),
  logSpans: count(8).describe("Maximum of block ranges in flight for one log query on this node"),
});

const upstream = z.strictObject({
  timeoutMs: milliseconds(30_000).describe("Deadline of a call, retries included"),
  attempts: count(3).describe("Maximum of attempts of a read"),
  hedge: z
    .union([
      z.literal(false),
      z.strictObject({
        afterMs: milliseconds(200).describe(
          "Least time until the second node gets the request; longer if the first node's 95th percentile is",
        ),
        maxShare: z.number().min(0).max(0.05).default(0.05).describe("Maximum share of requests that are sent twice"),
      }),
    ])
    .prefault({})
    .describe("Send a read to a second node if the first is slow for its method; `false`: never"),
  breaker: z
    .strictObject({
      failures: count(5).describe("Consecutive failures after which a node gets no requests"),
      openMs: milliseconds(5_000).describe("Time until a probe request is sent to the node"),
    })
    .prefault({}),
});

const logs = z.strictObject({
  maxBlocks: z
    .union([count(1_000_000), z.literal("none")])
    .default(1_000_000)
    .describe("Maximum of blocks in one query"),
  maxAddresses: count(1_000).describe("Maximum of addresses in one query"),
  maxTopics: count(1_000).describe("Maximum of topics in one position"),
  maxFilters: count(1_000).describe("Maximum of polled filters of one client"),
});

const simulate = z.strictObject({
  enabled: z.boolean().default(true).describe("Execute calls in forebay; false forwards them to a node"),
  engine: z
    .enum(ENGINE_KINDS)
    .default("auto")
    .describe(
      "`auto`: fast, a share checked with the reference; `reference`: the library, which leaves OP stacks to nodes",
    ),
  compareShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.001)
    .describe(
      "Share of runs that `auto` also executes on the reference, up to one a second; a code that differs is forwarded",
    ),
  profile: z
    .enum(["contract", "geth"])
    .default("contract")
    .describe("Form of a result: `contract` for one block per entry; `geth` also for the blocks in between"),
  errorShape: z
    .enum(["object", "string"])
    .default("object")
    .describe("Error of a failed call: {code, message, data}, or only the reason as a string"),
  pendingNumber: z
    .enum(["same", "next"])
    .default("same")
    .describe(
      "Number of the first block that is simulated on pending: that of the pending block (`same`), or the `next`",
    ),
  maxBlocks: count(256).describe("Maximum of blocks in one request"),
  maxCalls: count(5_000).describe("Maximum of calls in one block"),
  gasCap: count(50_000_000).describe("Maximum of gas in one request"),
  timeoutMs: milliseconds(5_000).describe("Deadline of one run"),
  workers: z
    .number()
    .int()
    .positive()
    .optional()
    .describe("Maximum of worker threads, started on first use; default: one less than the cores, from 1 to 4"),
});

const pending = z.strictObject({
  mode: z
    .enum(["auto", "feed", "native", "node"])
    .default("auto")
    .describe(
      "Source of pending: the feed, the newest sealed block (`native`) or the node; `auto`: the feed if one is configured",
    ),
  feeds: z.array(url("ws", "wss")).default([]).describe("The sequencer's feed; several are read at once"),
  maxDepth: count(5).describe("Maximum of pending blocks"),
  maxMessageBytes: count(16 * 1024 * 1024).describe("Maximum size of a decompressed feed message"),
  askNodeNonce: z.boolean().default(false).describe("Raise the pending nonce to the node's own"),
});

const finality = z
  .union([z.literal("node"), z.strictObject({ depth: count(64).describe("Blocks below latest that count as final") })])
  .default("node");

const chain = z.strictObject({
  name: name.describe("Path of this chain's endpoint"),
  chainId: z
    .number()
    .int()
    .positive()
    .optional()
    .describe(
      "Nodes of any other chain are suspended; default: the chain of the first node that responds, until restart",
    ),
  nodes: z.array(node).min(1).describe("The nodes behind this chain, one or more"),
  upstream: upstream.prefault({}),
  blockTimeMs: z.number().int().positive().optional().describe("Default: measured"),
  forks: z
    .union([
      z.enum(["auto", "none"]),
      z.enum(ETHEREUM_FORKS),
      z.enum(OP_FORKS),
      z.strictObject({ genesis: z.string() }),
    ])
    .default("auto")
    .describe(
      "Rules of execution: `auto` by chain id or newest block, `none` for no execution, a fork for all blocks, or {genesis: FILE} in geth's format",
    ),
  finality: finality.describe("`node`: the tags of the nodes; {depth}: this number of blocks below latest"),
  verify: z
    .enum(["off", "cheap", "full"])
    .default("full")
    .describe(
      "Checks of a node's response before it is served or cached: `cheap` for form and block, `full` also for hashes and roots",
    ),
  logs: logs.prefault({}),
  simulate: simulate.prefault({}),
  pending: pending.prefault({}),
  quirks: z
    .strictObject({
      anvilDepositNonce: z
        .boolean()
        .default(false)
        .describe("The node is anvil, whose receipts roots are wrong for blocks with deposits"),
    })
    .prefault({}),
  passthrough: url("http", "https").optional().describe("Target of requests that are not JSON-RPC"),
  allowNamespaces: z.array(z.string()).default([]).describe("Management namespaces that are allowed, e.g. admin"),
});

const cache = z.strictObject({
  memoryBytes: z
    .number()
    .int()
    .nonnegative()
    .default(256 * 1024 * 1024)
    .describe("Size of the memory cache in bytes; 0 disables it"),
  redis: z.string().optional().describe("redis://, rediss://, redis+sentinel://h1,h2/name, redis+cluster://h1,h2"),
  redisTimeoutMs: milliseconds(50).describe("Deadline of Redis; a later response is a cache miss"),
  bypassHeader: z.string().optional().describe("Request header that bypasses the cache; none by default"),
});

const server = z.strictObject({
  host: z.string().default("127.0.0.1").describe("Address to listen on; 0.0.0.0 for all"),
  port: z.number().int().min(0).max(65_535).default(8545).describe("JSON-RPC over HTTP and WebSocket; 0 for any"),
  opsHost: z.string().default("127.0.0.1").describe("Address of the ops port"),
  opsPort: z.number().int().min(0).max(65_535).default(9545).describe("/metrics, /healthz, /readyz, /config"),
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
  maxWebSockets: count(20_000).describe("Maximum of WebSocket connections"),
  maxSubscriptions: count(1_000).describe("Maximum of subscriptions on one WebSocket connection"),
  webSocketBufferBytes: count(1024 * 1024).describe("Buffered bytes at which a slow reader is closed (1013)"),
  webSocketPingMs: count(30_000).describe("Time between pings; a connection without a pong is closed"),
  webSocketIdleMs: count(3_600_000).describe("A WebSocket without calls and subscriptions is closed after this time"),
  logSpans: count(32).describe("Maximum of block ranges in flight for log queries, for all chains together"),
  drainDelayMs: milliseconds(5_000).describe(
    "Time after SIGTERM in which requests are still accepted, so that load balancers notice",
  ),
  readiness: z
    .union([z.enum(["any", "all"]), z.array(name).min(1)])
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

const access = z.strictObject({
  keys: z
    .array(
      z.strictObject({
        name: name.describe("Shown in logs"),
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

/** The whole configuration. The `describe` texts are copied into docs/configuration.md and the JSON Schema. */
export const configSchema = z
  .strictObject({
    chains: z
      .array(chain)
      .min(1)
      .refine((chains) => new Set(chains.map(({ name }) => name)).size === chains.length, {
        error: "names must differ",
      }),
    cache: cache.prefault({}),
    server: server.prefault({}),
    access: access.prefault({}),
    log: z
      .strictObject({
        level: z
          .enum(["trace", "debug", "info", "warn", "error", "silent"])
          .default("info")
          .describe("Lowest level that is logged"),
      })
      .prefault({}),
  })
  .refine(({ access: { limitStore }, cache: { redis } }) => limitStore === "memory" || redis !== undefined, {
    error: "limits in Redis require cache.redis",
    path: ["access", "limitStore"],
  })
  .superRefine(({ chains, server: { readiness } }, context) => {
    if (typeof readiness === "string") {
      return;
    }
    const names = chains.map((each) => each.name);
    for (const [index, unknown] of readiness.entries()) {
      if (names.includes(unknown)) {
        continue;
      }
      const message = `no chain has the name "${unknown}"; configured chains: ${names.join(", ")}`;
      context.addIssue({ code: "custom", message, path: ["server", "readiness", index] });
    }
  });

export type Config = z.infer<typeof configSchema>;
export type ChainConfig = Config["chains"][number];
