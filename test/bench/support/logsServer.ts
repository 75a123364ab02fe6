import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Pool } from "undici";
import { ownContext } from "../../../src/core/context.ts";
import type { Heads, RingBlock } from "../../../src/core/heads.ts";
import { resolveLogRange } from "../../../src/core/logRange.ts";
import { type Node, NodeError } from "../../../src/core/node.ts";
import { type Hash, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { parseLogQuery } from "../../../src/ethereum/logFilter.ts";
import { FairGate } from "../../../src/limits/fairGate.ts";
import type { Segment, SegmentStore } from "../../../src/logs/cachedSegments.ts";
import { SplitLogs } from "../../../src/logs/splitLogs.ts";
import { errorKind, logsRefusal } from "../../../src/nodes/errorKind.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { listen } from "../../support/servers/ports.ts";

export interface LogsServerOptions {
  readonly nodePort: number;
  readonly head: number;
  readonly rangesPerNode: number;
  /** Limit of the store; the oldest entries are evicted. */
  readonly storeBytes: number;
}

const ERROR_START = '{"jsonrpc":"2.0","id":1,"error"';
const RESULT_START = '{"jsonrpc":"2.0","id":1,"result":';

/** Creates one node over HTTP whose responses are read whole, as in nodes/. */
const createNode = ({ nodePort, head, rangesPerNode }: LogsServerOptions): Node => {
  const pool = new Pool(`http://127.0.0.1:${nodePort}`, { connections: 64 });
  return {
    name: "node",
    head: BigInt(head),
    available: true,
    use: "yes",
    origin: "logs",
    oldest: 0n,
    priority: 0,
    maxLogRanges: rangesPerNode,
    accepts: () => true,
    serves: () => true,
    recordPruned: () => {},
    batch: async () => [],
    request: async ({ method, params }, { signal }) => {
      const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const { body } = await pool.request({ path: "/", method: "POST", body: call, signal });
      const text = Buffer.from(await body.arrayBuffer());
      if (text.toString("latin1", 0, ERROR_START.length) !== ERROR_START) {
        return { body: text.subarray(RESULT_START.length, -1), status: { fwd: "miss" } };
      }
      const { error } = JSON.parse(text.toString());
      const kind = errorKind(error.code, error.message, 200, false);
      throw new NodeError(kind, "node", error.message, { code: error.code, refusal: logsRefusal(kind, error.message) });
    },
  };
};

const createStore = (maxBytes: number): SegmentStore => {
  const entries = new Map<string, Segment>();
  let bytes = 0;
  return {
    get: async (keys) => keys.map((key) => entries.get(key)),
    set: (key, value) => {
      entries.set(key, { bytes: value, from: "memory" });
      bytes += value.length;
      for (const [oldest, { bytes: dropped }] of entries) {
        if (bytes <= maxBytes) {
          break;
        }
        entries.delete(oldest);
        bytes -= dropped.length;
      }
    },
  };
};

const createHeads = (head: number): Heads => {
  const hash: Hash = `0x${head.toString(16).padStart(64, "a")}`;
  const latest: RingBlock = {
    number: BigInt(head),
    hash,
    parentHash: ZERO_HASH,
    timestamp: 0n,
    logsBloom: new Uint8Array(256),
  };
  const at = (number: bigint) => (number === latest.number ? latest : undefined);
  return {
    latest,
    isAgreed: false,
    safe: latest,
    finalized: latest,
    oldest: latest.number,
    at,
    header: () => undefined,
  };
};

/** Serves SplitLogs behind node:http. Other benches measure dispatch and metrics. */
const startLogsServer = async (options: LogsServerOptions): Promise<number> => {
  const heads = createHeads(options.head);
  const split = new SplitLogs({
    agree: 1,
    chain: "bench",
    nodes: [createNode(options)],
    store: createStore(options.storeBytes),
    slots: new FairGate<Node>({ max: 32 }),
    telemetry: createTelemetry({ level: "silent" }),
  });
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) {
      body += chunk;
    }
    if (request.url === "/cpu") {
      const { user, system } = process.cpuUsage();
      return response.end(String((user + system) / 1_000));
    }
    if (request.url === "/memory") {
      return response.end(String(process.memoryUsage().rss));
    }
    const { filter, blocks } = parseLogQuery(JSON.parse(body), { maxAddresses: 1_000, maxTopics: 1_000 });
    if ("blockHash" in blocks) {
      return response.end("[]");
    }
    const { sealed } = resolveLogRange(blocks.fromBlock, blocks.toBlock, { heads });
    const left = new AbortController();
    response.on("close", () => left.abort());
    const scope = { signal: left.signal, deadlineMs: performance.now() + 30_000 };
    const context = ownContext(String(request.headers["x-caller"]), { heads }, scope);
    if (sealed === undefined) {
      return response.end("[]");
    }
    const answer = await split.request(filter, sealed, context);
    if (answer.body instanceof Uint8Array) {
      return response.end(answer.body);
    }
    await pipeline(Readable.from(answer.body, { objectMode: false }), response).catch(() => response.destroy());
  });
  return listen(server);
};

/** The yardstick: sends the same bytes from one buffer. */
const startBareServer = async (bytes: number): Promise<number> => {
  const body = Buffer.alloc(bytes, "x");
  const server = createServer(async (request, response) => {
    for await (const _ of request) {
    }
    response.end(body);
  });
  return listen(server);
};

process.once("message", async (options: LogsServerOptions | { readonly bareBytes: number }) =>
  process.send?.(await ("bareBytes" in options ? startBareServer(options.bareBytes) : startLogsServer(options))),
);
process.on("disconnect", () => process.exit());
