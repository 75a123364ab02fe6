import { hash } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createService } from "../../support/servers/service.ts";
import { startBareServer } from "./bareServer.ts";

interface OurOptions {
  readonly nodeUrl: string;
  readonly redisUrl: string | undefined;
  readonly dataDir?: string | undefined;
  readonly keys?: readonly string[] | undefined;
}

/** The server to start. */
export type CachedServerOptions =
  | OurOptions
  /** The text of `result` that a bare server sends. */
  | { readonly result: string };

/** A complete forebay. With Redis or a data folder, the memory cache is disabled. */
const startOurs = async ({ nodeUrl, redisUrl: redis, dataDir, keys = [] }: OurOptions): Promise<number> => {
  const { url } = await createService(
    { nodes: [{ url: nodeUrl }], pending: { mode: "node" } },
    {
      cache: {
        ...(redis !== undefined && { redis }),
        ...((redis !== undefined || dataDir !== undefined) && { memoryBytes: 0 }),
      },
      server: dataDir === undefined ? {} : { dataDir },
      access: { keys: keys.map((key) => ({ name: key, sha256: hash("sha256", key) })) },
    },
  );
  return Number(new URL(url).port);
};

const delay = monitorEventLoopDelay({ resolution: 1 });
process.once("message", async (options: CachedServerOptions) => {
  const port = "result" in options ? await startBareServer(options.result) : await startOurs(options);
  process.send?.(port);
  delay.enable();
  // Any further message requests the event loop delay since the last one.
  process.on("message", () => {
    process.send?.({ loopP99Ms: delay.percentile(99) / 1e6 });
    delay.reset();
  });
});
process.on("disconnect", () => process.exit());
