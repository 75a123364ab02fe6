import { startChild } from "../child.ts";
import { startConfigured } from "../forebay.ts";
import { type Curve, type CurveOptions, callBody, cpuOf, type Point, sendCalls } from "./curve.ts";

const GIB = 2 ** 30;
const BATCH = 1_000;
/** 10^7 entries need 11 GiB: `ENTRIES=10000000 npm run bench -- scaling`. */
const MAX_ENTRIES = Number(process.env.ENTRIES ?? 1e6);
/** Cost of an entry, and of the room that new entries have beside it. */
const BYTES_EACH = 1_700;
const PREFIX = `0x${"0".repeat(32)}`;

const balanceOf = (count: string): readonly [string, readonly unknown[]] => [
  "eth_getBalance",
  [PREFIX + count, "0x10"],
];

/** Reads each entry twice, because an entry is admitted with its second read. */
const fill = async (url: string, from: number, to: number): Promise<void> => {
  for (let at = from; at < to; at += BATCH) {
    const calls = Array.from({ length: BATCH }, (_, index) => balanceOf((at + index).toString(16).padStart(8, "0")));
    await sendCalls(url, calls);
    await sendCalls(url, calls);
  }
};

/** Hits by the number of cached entries, which are read in turn. */
export const measureEntries = async (options: CurveOptions): Promise<Curve> => {
  const node = startChild("missServer.ts");
  const nodePort = Number(await node.message());
  const server = await startConfigured({
    chains: [{ name: "chain", nodes: [{ url: `http://127.0.0.1:${nodePort}` }], pending: { mode: "node" } }],
    cache: { memoryBytes: Math.max(2, Math.ceil((MAX_ENTRIES * BYTES_EACH) / GIB)) * GIB },
    server: { port: 0, opsPort: 0 },
  });
  const points: Point[] = [];
  let filled = 0;
  try {
    for (const x of options.short ? [1e3, 1e4] : [1e3, 1e4, 1e5, 1e6, 1e7].filter((size) => size <= MAX_ENTRIES)) {
      await fill(`http://127.0.0.1:${server.port}`, filled, x);
      filled = x;
      const load = { body: callBody(...balanceOf("{n}")), counts: x, connections: 32 };
      points.push({ x, forebay: await cpuOf(server, load, options) });
    }
  } finally {
    await server.end();
    await node.end();
  }
  return { name: "entries", points };
};
