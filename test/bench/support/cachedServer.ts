import { hash } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createService } from "../../support/servers/service.ts";
import { startBareServer } from "./bareServer.ts";

/** The server to start. */
export type CachedServerOptions =
  | { readonly nodeUrl: string; readonly redisUrl: string | undefined; readonly keys?: readonly string[] | undefined }
  /** The text of `result` that a bare server sends. */
  | { readonly result: string };

/** A complete forebay. With Redis, the memory cache is disabled. */
const startOurs = async (nodeUrl: string, redis?: string, keys: readonly string[] = []): Promise<number> => {
  const { url } = await createService(
    { nodes: [{ url: nodeUrl }], pending: { mode: "node" } },
    {
      cache: redis === undefined ? {} : { redis, memoryBytes: 0 },
      access: { keys: keys.map((key) => ({ name: key, sha256: hash("sha256", key) })) },
    },
  );
  return Number(new URL(url).port);
};

const delay = monitorEventLoopDelay({ resolution: 1 });
process.once("message", async (options: CachedServerOptions) => {
  const port =
    "result" in options
      ? await startBareServer(options.result)
      : await startOurs(options.nodeUrl, options.redisUrl, options.keys);
  process.send?.(port);
  delay.enable();
  // Any further message requests the event loop delay since the last one.
  process.on("message", () => {
    process.send?.({ loopP99Ms: delay.percentile(99) / 1e6 });
    delay.reset();
  });
});
process.on("disconnect", () => process.exit());
