import { createServer } from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createService } from "../../support/service.ts";

/** What the server is to be. */
export type CachedServerOptions =
  | { readonly nodeUrl: string; readonly redisUrl: string | undefined }
  /** The text of `result` that a bare server sends. */
  | { readonly result: string };

/** Whole forebay; with Redis, memory is off. */
const startOurs = async (nodeUrl: string, redis: string | undefined): Promise<number> => {
  const { url } = await createService(
    { nodes: [{ url: nodeUrl }], pending: { mode: "node" } },
    { cache: redis === undefined ? {} : { redis, memoryBytes: 0 } },
  );
  return Number(new URL(url).port);
};

/** Up to here one copy is cheaper than several writes. */
const MAX_JOINED_BYTES = 65_536;
const END = Buffer.from("}");

/** The same bytes from the least that a JSON-RPC server can be on node:http: read, parse, answer. */
const startBare = async (result: Buffer): Promise<number> => {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const { id } = JSON.parse(body);
      const head = Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`);
      const length = head.length + result.length + 1;
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": length });
      if (length < MAX_JOINED_BYTES) return response.end(Buffer.concat([head, result, END]));
      response.write(head);
      response.write(result);
      response.end(END);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
};

const delay = monitorEventLoopDelay({ resolution: 1 });
process.once("message", async (options: CachedServerOptions) => {
  const port =
    "result" in options
      ? await startBare(Buffer.from(options.result))
      : await startOurs(options.nodeUrl, options.redisUrl);
  process.send?.(port);
  delay.enable();
  // Any further message asks for the event loop's delay since the last one.
  process.on("message", () => {
    process.send?.({ loopP99Ms: delay.percentile(99) / 1e6 });
    delay.reset();
  });
});
process.on("disconnect", () => process.exit());
