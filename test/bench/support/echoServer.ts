import type { InboundRequest } from "../../../src/core/context.ts";
import type { CacheStatus } from "../../../src/core/rpcSource.ts";
import { formatCacheStatus } from "../../../src/http/cacheStatus.ts";
import { HttpServer } from "../../../src/http/httpServer.ts";
import type { Reply } from "../../../src/jsonrpc/call.ts";
import { createDispatch } from "../../../src/jsonrpc/dispatch.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { startBareServer } from "./bareServer.ts";

interface EchoReply extends Reply {
  readonly status: CacheStatus;
}

const RESULT = '"0x2105"';

/** Starts forebay's server, dispatch and metrics in front of one constant method. */
const startOurs = async (): Promise<number> => {
  const { metrics, log } = createTelemetry({ level: "error" });
  const reply: EchoReply = { body: Buffer.from(RESULT), status: { hit: "memory" } };
  const constant = async (): Promise<EchoReply> => reply;
  const methods = new Map([["eth_chainId", constant]]);
  const dispatch = createDispatch<InboundRequest, EchoReply>({
    lookup: (method) => methods.get(method),
    forward: constant,
    maxBatch: 1_000,
    maxResponseBytes: 150_000_000,
    onOutcome: ({ call, seconds }) => {
      metrics.requests.inc({ chain: "bench", method: call.method, outcome: "ok" });
      metrics.requestSeconds.observe({ chain: "bench", method: call.method }, seconds);
    },
    onError: (err) => log.error({ err }, "call failed"),
  });
  const server = await HttpServer.listen({
    routes: new Map([
      [
        "/",
        {
          handle: async (body, request) => {
            const { status, retryAfterSeconds, chunks, replies } = await dispatch(body, request);
            return { status, retryAfterSeconds, chunks, cacheStatus: formatCacheStatus(replies) };
          },
        },
      ],
    ]),
    host: "127.0.0.1",
    port: 0,
    keepAliveMs: 75_000,
    maxBodyBytes: 5 * 1024 * 1024,
    maxConnectionsPerAddress: 100_000,
    corsOrigins: "*",
    about: () => "{}",
    telemetry: { log, metrics },
  });
  return server.port;
};

const port = await (process.argv[2] === "bare" ? startBareServer(RESULT) : startOurs());
process.send?.(port);
process.on("disconnect", () => process.exit());
