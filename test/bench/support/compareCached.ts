import { resultText, rpc } from "../../support/clients/rpc.ts";
import { until } from "../../support/clients/until.ts";
import { createFakeChain, type FakeChain } from "../../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../../support/fakes/fakeNode.ts";
import type { CachedServerOptions } from "./cachedServer.ts";
import { type Child, startChild } from "./child.ts";
import { alternate, cpuResult, medianOf, type Server } from "./compareServers.ts";
import { type BenchOptions, type BenchResult, round } from "./result.ts";

export interface CachedShape {
  readonly claim: string;
  readonly method: string;
  readonly params: readonly unknown[];
  /** The responses of the node. */
  readonly handlers: (chain: FakeChain) => NonNullable<FakeNodeOptions["handlers"]>;
  readonly connections: number;
  readonly redisUrl?: string;
  /** Sends the call this many times in one batch, and compares an item with a single call. */
  readonly batch?: number;
}

export const HEIGHT = 1_100;
export const COMPILE_MS = 4_000;

export const startCached = async (
  options: CachedServerOptions,
): Promise<{ child: Child; server: Server; url: string }> => {
  const child = startChild("cachedServer.ts");
  child.send(options);
  const port = (await child.message()) as number;
  return { child, server: { port, path: "/", pids: [child.pid], end: child.end }, url: `http://127.0.0.1:${port}` };
};

/** Repeats the request until it is a cache hit, and returns the response. */
export const warm = async (
  url: string,
  { method, params }: Pick<CachedShape, "method" | "params">,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> => {
  let result = "";
  await until(async () => {
    const response = await rpc(url, method, params, headers);
    result = resultText(response.text);
    return response.headers.get("cache-status")?.startsWith("forebay; hit") === true;
  }, `${method} is kept`);
  return result;
};

/** Compares the CPU time of one request with that of a bare node:http server that sends the same bytes. */
export const compareCached = async (shape: CachedShape, { short }: BenchOptions): Promise<BenchResult> => {
  const startSeconds = Math.floor(Date.now() / 1_000) - 2 * HEIGHT;
  const chain = createFakeChain({ height: HEIGHT, startSeconds });
  const node = await createFakeNode({ chain, handlers: shape.handlers(chain) });
  const ours = await startCached({ nodeUrl: node.url, redisUrl: shape.redisUrl });
  const started = [ours];
  try {
    const result = await warm(ours.url, shape);
    const bare = await startCached({ result });
    started.push(bare);
    const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: shape.method, params: shape.params });
    const load = {
      body: shape.batch === undefined ? call : `[${Array(shape.batch).fill(call).join()}]`,
      connections: shape.connections,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    // The first seconds are not counted, because code is being compiled.
    await alternate(ours.server, bare.server, { ...load, measureMs: short ? load.measureMs : COMPILE_MS }, 1);
    ours.child.send("delay");
    await ours.child.message();
    const results = await alternate(ours.server, bare.server, load, short ? 3 : 7);
    ours.child.send("delay");
    const { loopP99Ms } = (await ours.child.message()) as { loopP99Ms: number };
    const single =
      shape.batch === undefined
        ? undefined
        : await alternate(ours.server, ours.server, { ...load, body: call }, short ? 2 : 3);
    const compared = cpuResult(results);
    return {
      claim: shape.claim,
      ...compared,
      ...(single && {
        itemShare: round(compared.ours / (shape.batch ?? 1) / medianOf(single.ours, "cpuMicroseconds")),
      }),
      bytes: Buffer.byteLength(result),
      loopP99Ms: round(loopP99Ms),
      oursMedianMs: round(medianOf(results.ours, "medianMs")),
      yardstickMedianMs: round(medianOf(results.yardstick, "medianMs")),
    };
  } finally {
    await Promise.all(started.map(({ server }) => server.end()));
    await node.close();
  }
};

const BLOCK_BYTES = 1_500;

/** Creates a final block of this size in bytes. */
export const oneBlock: Pick<CachedShape, "method" | "params" | "handlers"> = {
  method: "eth_getBlockByNumber",
  params: ["0x10", true],
  handlers: (chain) => ({
    eth_getBlockByNumber: ([tag]) => {
      const depths: Record<string, number> = { latest: 0, safe: 4, finalized: 8 };
      const block = chain.blocks[HEIGHT - (depths[String(tag)] ?? HEIGHT - Number(tag))]?.json;
      if (block === undefined || tag !== "0x10") {
        return block ?? null;
      }
      const missing = BLOCK_BYTES - JSON.stringify({ ...block, extraData: "0x" }).length;
      return { ...block, extraData: `0x${"ab".repeat(Math.max(0, missing) / 2)}` };
    },
  }),
};
