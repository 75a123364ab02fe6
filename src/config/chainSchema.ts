import { z } from "zod";
import { ETHEREUM_FORKS, OP_FORKS } from "../ethereum/rules.ts";
import { ENGINE_KINDS } from "../evm/engine.ts";
import { DEFAULT_CONCURRENCY, MAX_BATCH_CALLS, MAX_WAITING_CALLS } from "../nodes/nodeConfig.ts";
import { BREAKER } from "../nodes/nodeState.ts";
import { count, lowerCaseName, milliseconds, removedValue, urlWith } from "./optionTypes.ts";

const limit = (fallback: number) => z.number().int().nonnegative().default(fallback);

/** The options of followed state: `chains[].state`. */
const stateSchema = z.strictObject({
  follow: z
    .union([z.enum(["auto", "plain"]), z.literal(false)])
    .default("auto")
    .describe(
      "Follow state from block to block: `auto` for reads and calls except on development nodes, `plain` for reads of single values, or false",
    ),
  source: z
    .enum(
      ["auto", "feed", "accessList", "trace"],
      removedValue("execute", "use auto, which reads block access lists and traces"),
    )
    .default("auto")
    .describe("Source of a block's writes: one of them, or `auto` for feed, then access list, then trace"),
  prove: z
    .union([z.literal("auto"), z.boolean()])
    .default("auto")
    .describe(
      "Prove values by `eth_getProof`, and write sets by lists and witnesses: `auto` where it pays, true also for feeds and fast chains, or never",
    ),
  unitsPerMinute: limit(30_000).describe(
    "Provider units a minute that learning and checks of values may cost, on all nodes of the chain together",
  ),
  waitMs: milliseconds(100).describe("Maximum wait of a read at a new head for that block's writes"),
  units: z
    .record(z.string(), z.number().nonnegative())
    .default({})
    .describe("Provider units of a call on this chain, by method or `debug_*`; replaces entries of `usage`"),
  cacheBytes: z
    .number()
    .int()
    .nonnegative()
    .default(256 * 1024 * 1024)
    .describe(
      "Maximum size of known state values in bytes; 0 disables them. Executions cache a quarter of it more, and as many bytes of codes",
    ),
});

/** Names of methods; the last character may be `*`. */
const methodPatterns = z.array(z.string().regex(/^[A-Za-z0-9_]+\*?$|^\*$/, "a method, or its beginning and `*`"));

const node = z.strictObject({
  name: lowerCaseName.optional().describe("Shown in metrics and headers; default: node1, node2 ..."),
  provider: lowerCaseName
    .optional()
    .describe(
      "Who runs the node. Nodes of one provider count as one; default: a known provider's name, else host and port",
    ),
  url: urlWith("http", "https").describe("HTTP endpoint; may contain credentials, is never logged"),
  wsUrl: urlWith("ws", "wss").optional().describe("WebSocket endpoint for new heads"),
  headers: z.record(z.string(), z.string()).default({}).describe("Sent with every request to this node"),
  requestsPerSecond: z.number().positive().optional().describe("Budget of calls a second; none by default"),
  unitsPerDay: z
    .number()
    .positive()
    .optional()
    .describe(
      "Units of a UTC day, from all replicas, after which the node is used only if no other can answer; none by default",
    ),
  concurrency: count(DEFAULT_CONCURRENCY).describe("Maximum of requests in flight"),
  batch: z
    .strictObject(
      {
        maxCalls: count(MAX_BATCH_CALLS).describe(
          "Maximum of reads in one HTTP request; 1 for nodes that bill or refuse requests with several",
        ),
      },
      removedValue("off", "set batch.maxCalls to 1"),
    )
    .prefault({}),
  priority: z
    .number()
    .int()
    .min(0)
    .max(9)
    .default(0)
    .describe(
      "Tier, 0 first: a later tier gets reads only if no node of an earlier one is usable, has the block, and has room",
    ),
  methods: z
    .strictObject({
      only: methodPatterns.optional().describe("The node gets these methods only, e.g. `eth_getLogs`, `trace_*`"),
      never: methodPatterns.default([]).describe("The node never gets these methods"),
    })
    .prefault({}),
  private: z
    .boolean()
    .default(false)
    .describe("With `writes: all`, the node gets raw transactions only if all nodes are private"),
  logSpans: count(8).describe("Maximum of block ranges in flight for one log query on this node"),
});

const upstream = z.strictObject({
  timeoutMs: milliseconds(30_000).describe("Deadline of a call, retries included"),
  attempts: count(3).describe("Maximum of attempts of a read"),
  maxWaiting: count(MAX_WAITING_CALLS).describe(
    "Maximum of calls that wait for a node, each to its deadline; a further one is 503",
  ),
  hedge: z
    .strictObject(
      {
        afterMs: milliseconds(200).describe(
          "Least time until a second node gets a read too; longer if the first node's 95th percentile for the method is",
        ),
        maxShare: z
          .number()
          .min(0)
          .max(0.05)
          .default(0.05)
          .describe("Maximum share of reads that a second node gets because the first is slow; 0 for none"),
      },
      removedValue(false, "set hedge.maxShare to 0"),
    )
    .prefault({}),
  breaker: z
    .strictObject({
      failures: count(BREAKER.failures).describe("Consecutive failures after which a node gets no requests"),
      openMs: milliseconds(BREAKER.openMs).describe("Time until a probe request is sent to the node"),
    })
    .prefault({}),
});

const logs = z.strictObject({
  maxBlocks: z
    .union([z.int().positive(), z.literal("none")])
    .default(1_000_000)
    .describe("Maximum of blocks in one query"),
  maxAddresses: count(1_000).describe("Maximum of addresses in one query"),
  maxTopics: count(1_000).describe("Maximum of topics in one position"),
  maxFilters: count(1_000).describe("Maximum of polled filters of one client"),
  maxFilterBytes: count(64 * 1024 * 1024).describe(
    "Maximum of bytes of one client's polled filters, and of its subscriptions: the text of each",
  ),
});

const simulate = z.strictObject({
  engine: z
    .enum(ENGINE_KINDS, removedValue("auto", "use fast, the default"))
    .default("fast")
    .describe("`reference`: the library, which is slower, and leaves OP stacks to nodes"),
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
  maxStateReads: count(2_000).describe(
    "Maximum of state values that one request reads from nodes, a batch together. An account is three. Each counts as a call in limits of `access`",
  ),
  gasCap: count(50_000_000).describe("Maximum of gas in one request"),
  maxResponseBytes: count(16 * 1024 * 1024).describe(
    "Maximum size of the result of one simulation; the memory budget holds it while the simulation runs",
  ),
  timeoutMs: milliseconds(5_000).describe("Deadline of one run"),
  workers: z
    .number()
    .int()
    .positive()
    .optional()
    .describe(
      "Maximum of runs at once; chains share as many threads as the largest value, a feed has one more; default: cores - 1, 1 to 4",
    ),
});

const pending = z.strictObject({
  mode: z
    .enum(["auto", "feed", "native", "node"])
    .default("auto")
    .describe(
      "Source of pending: the feed, the newest sealed block (`native`) or the node; `auto`: the feed if one is configured",
    ),
  feeds: z.array(urlWith("ws", "wss")).default([]).describe("The sequencer's feed; several are read at once"),
  maxDepth: count(5).describe("Maximum of pending blocks"),
  maxMessageBytes: count(16 * 1024 * 1024).describe("Maximum size of a decompressed feed message"),
});

const finality = z.strictObject(
  {
    depth: z
      .number()
      .int()
      .positive()
      .optional()
      .describe("Blocks below latest that count as final; default: the tags of the nodes"),
  },
  removedValue("node", "it holds without finality.depth"),
);

const reads = z.strictObject({
  agree: z
    .literal([1, 2])
    .default(1)
    .describe("Origins that must return the same state, call result and logs; 2 reads each twice"),
});

const heads = z.strictObject({
  agree: z
    .union([z.literal("auto"), z.number().int().positive()])
    .default("auto")
    .describe("Origins that must have a block before it is served as latest; `auto`: a majority of those with a vote"),
});

/** The options of one chain: `chains[]`. */
export const chainSchema = z.strictObject({
  name: lowerCaseName.describe("Path of this chain's endpoint"),
  chainId: z
    .number()
    .int()
    .positive()
    .optional()
    .describe(
      "Nodes of any other chain are suspended; default: the chain of the first node that responds, until restart",
    ),
  nodes: z.array(node).min(1).describe("The nodes behind this chain, one or more"),
  heads: heads.prefault({}),
  reads: reads.prefault({}),
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
  forksFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "JSON file with fork times beside the built-in ones, for `forks: auto`; it is read again when it changes",
    ),
  finality: finality.prefault({}),
  verify: z
    .enum(["off", "cheap", "full"])
    .default("full")
    .describe(
      "Checks of a node's response before it is served or cached: `cheap` for form and block, `full` also for hashes and roots",
    ),
  writes: z
    .enum(["first", "all"])
    .default("first")
    .describe(
      "Nodes that get a raw transaction: the best one, or `all` usable ones, each once; the first success counts",
    ),
  logs: logs.prefault({}),
  simulate: simulate.prefault({}),
  pending: pending.prefault({}),
  state: stateSchema.prefault({}),
  quirks: z
    .strictObject({
      anvilDepositNonce: z
        .boolean()
        .default(false)
        .describe("The node is anvil, whose receipts roots are wrong for blocks with deposits"),
    })
    .prefault({}),
  passthrough: urlWith("http", "https").optional().describe("Target of requests that are not JSON-RPC"),
  allowNamespaces: z
    .array(z.string().regex(/^[A-Za-z0-9]+(?:_[A-Za-z0-9_]*\*?)?$/, "a namespace, or a method's name"))
    .default([])
    .describe("Refused namespaces and single methods that are allowed, e.g. `admin`, `eth_sendTransaction`"),
});
