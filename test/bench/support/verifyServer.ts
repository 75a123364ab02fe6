import { createService } from "../../support/servers/service.ts";

export interface VerifyServerOptions {
  readonly nodeUrl: string;
  readonly verify: "off" | "full";
}

/** Starts a complete forebay without a cache. It answers later messages with the main thread's CPU time so far. */
process.once("message", async ({ nodeUrl, verify }: VerifyServerOptions) => {
  const { url } = await createService(
    { nodes: [{ url: nodeUrl }], verify, pending: { mode: "node" }, blockTimeMs: 60_000 },
    { cache: { memoryBytes: 0 } },
  );
  process.send?.(Number(new URL(url).port));
  process.on("message", () => {
    const { user, system } = process.threadCpuUsage();
    process.send?.((user + system) / 1e6);
  });
});
process.on("disconnect", () => process.exit());
