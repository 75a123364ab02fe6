import { createServer } from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createAbsent } from "../../src/cache/absent.ts";
import { cached } from "../../src/cache/cached.ts";
import { createKeyPrefix } from "../../src/cache/key.ts";
import { createMemory } from "../../src/cache/memory.ts";
import { createRedis } from "../../src/cache/redis.ts";
import type { Answer, Source } from "../../src/chain/source.ts";
import type { Call } from "../../src/jsonrpc/call.ts";
import { createDispatch } from "../../src/jsonrpc/dispatch.ts";
import { formatCacheStatus } from "../../src/server/cacheStatus.ts";
import type { EndpointRequest } from "../../src/server/endpoint.ts";
import { createHttpServer } from "../../src/server/http.ts";
import { createTelemetry } from "../../src/telemetry.ts";
import { contextOf, hashOf, headsOf, questionOf } from "../support/question.ts";

/** What the server answers: JSON text of so many bytes, like a block or a list of logs. */
const createBody = (bytes: number): Buffer => {
  const log = `{"address":"0x${"a1".repeat(20)}","data":"0x${"b2".repeat(96)}","topics":["0x${"c3".repeat(32)}"]}`;
  return Buffer.from(
    `[${Array(Math.ceil(bytes / (log.length + 1)))
      .fill(log)
      .join(",")}]`,
  );
};

const [which, size = "1500", redisUrl] = process.argv.slice(2);
const BODY = createBody(Number(size));
const HEADS = headsOf({ latest: 0x7fff_ffff, finalized: 0x7fff_ffff, oldest: 0x7fff_ffff });

const createSource = (): Source => {
  const telemetry = createTelemetry({ level: "error" });
  const source: Source = { request: async () => ({ body: BODY, status: {} }) };
  return cached(source, {
    chain: "bench",
    prefix: createKeyPrefix(1, hashOf(0)),
    memory: createMemory({ maxBytes: redisUrl === undefined ? 256 * 1024 * 1024 : 0, telemetry }),
    ...(redisUrl !== undefined && { redis: createRedis({ url: redisUrl, timeoutMs: 50, telemetry }) }),
    absent: createAbsent(),
    telemetry,
  });
};

/** forebay's server, dispatch, metrics and cache; one method, whose only parameter is a final block's number. */
const startOurs = async (): Promise<number> => {
  const { metrics, log } = createTelemetry({ level: "error" });
  const source = createSource();
  const context = contextOf(HEADS);
  const read = (call: Call): Promise<Answer> => {
    const block = { number: BigInt(String(call.params[0])) };
    return source.request(questionOf({ ...call, lifetime: "final", block, subject: `["${call.method}"]` }), context);
  };
  const dispatch = createDispatch<EndpointRequest, Answer>({
    lookup: () => read,
    forward: read,
    maxBatch: 1_000,
    maxResponseBytes: 150_000_000,
    onOutcome: ({ call, seconds }) => {
      metrics.requests.inc({ chain: "bench", method: call.method, outcome: "ok" });
      metrics.requestSeconds.observe({ chain: "bench", method: call.method }, seconds);
    },
    onError: (err) => log.error({ err }, "call failed"),
  });
  const server = await createHttpServer({
    routes: new Map([
      [
        "/",
        {
          handle: async (body, request) => {
            const result = await dispatch(body, request);
            return { ...result, cacheStatus: formatCacheStatus(result.replies) };
          },
        },
      ],
    ]),
    host: "127.0.0.1",
    port: 0,
    keepAliveMs: 75_000,
    maxBodyBytes: 5 * 1024 * 1024,
    corsOrigins: "*",
    about: () => "{}",
    metrics,
    onError: (err) => log.error({ err }, "request failed"),
  });
  return server.port;
};

/** Up to here one copy is cheaper than several writes. */
const MAX_JOINED_BYTES = 65_536;
const END = Buffer.from("}");

/** The same bytes from the least that a JSON-RPC server can be on node:http: read, parse, answer. */
const startBare = async (): Promise<number> => {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const { id } = JSON.parse(body);
      const head = Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`);
      const length = head.length + BODY.length + 1;
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": length });
      if (length < MAX_JOINED_BYTES) return response.end(Buffer.concat([head, BODY, END]));
      response.write(head);
      response.write(BODY);
      response.end(END);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
};

const delay = monitorEventLoopDelay({ resolution: 1 });
const port = await (which === "bare" ? startBare() : startOurs());
process.send?.(port);
delay.enable();
// Any message asks for the event loop's delay since the last one.
process.on("message", () => {
  process.send?.({ loopP99Ms: delay.percentile(99) / 1e6 });
  delay.reset();
});
process.on("disconnect", () => process.exit());
