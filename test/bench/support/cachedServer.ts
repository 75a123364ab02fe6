import { monitorEventLoopDelay } from "node:perf_hooks";
import { createService } from "../../support/servers/service.ts";
import { startBareServer } from "./bareServer.ts";

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

const delay = monitorEventLoopDelay({ resolution: 1 });
process.once("message", async (options: CachedServerOptions) => {
  const port =
    "result" in options ? await startBareServer(options.result) : await startOurs(options.nodeUrl, options.redisUrl);
  process.send?.(port);
  delay.enable();
  // Any further message asks for the event loop's delay since the last one.
  process.on("message", () => {
    process.send?.({ loopP99Ms: delay.percentile(99) / 1e6 });
    delay.reset();
  });
});
process.on("disconnect", () => process.exit());
