import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createService } from "../../support/servers/service.ts";

/** A complete forebay in front of a node of `walletNode.ts`, in a process of its own. */
export interface WalletServiceOptions {
  readonly nodeUrl: string;
  readonly forks: "amsterdam" | "prague";
  readonly blockMs: number;
  readonly state: object;
}

/** The memory in use after garbage was collected. The answer to "heap". */
export interface HeapBytes {
  readonly heapBytes: number;
}

setFlagsFromString("--expose-gc");
const gc: () => void = runInNewContext("gc");

process.once("message", async ({ nodeUrl, forks, blockMs, state }: WalletServiceOptions) => {
  const { url } = await createService({ nodes: [{ url: nodeUrl }], forks, blockTimeMs: blockMs, state });
  process.send?.(Number(new URL(url).port));
  process.on("message", () => {
    gc();
    const bytes: HeapBytes = { heapBytes: process.memoryUsage().heapUsed };
    process.send?.(bytes);
  });
});
process.on("disconnect", () => process.exit());
