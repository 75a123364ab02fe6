import { untilReady } from "../support/servers/command.ts";
import { startChild } from "./support/child.ts";
import { type Measured, measure, medianOf, type Server, spread } from "./support/compareServers.ts";
import { startForebay } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

const CALLS = 20;
/** One client, so that requests of different clients share nothing. */
const CONNECTIONS = 1;

/** A call whose data no other call has: `index` is the position in the batch. */
const callAt = (index: number): string => {
  const to = `0x${index.toString(16).padStart(40, "1")}`;
  return `{"jsonrpc":"2.0","id":${index},"method":"eth_call","params":[{"to":"${to}","data":"0x{n}"},"latest"]}`;
};
const SINGLE = callAt(0);
const BATCH = `[${Array.from({ length: CALLS }, (_, index) => callAt(index)).join()}]`;

/** Sends batches, and returns the least number of HTTP requests that the node got for one: a poll of its head may come between. */
const countRequests = async ({ port }: Server, node: ReturnType<typeof startChild>): Promise<number> => {
  const count = async (): Promise<number> => {
    node.send("count");
    return Number(await node.message());
  };
  const counts: number[] = [];
  for (const n of ["00000000", "00000001", "00000002"]) {
    const before = await count();
    const body = BATCH.replaceAll("{n}", n);
    await fetch(`http://127.0.0.1:${port}`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    counts.push((await count()) - before);
  }
  return Math.min(...counts);
};

/** Compares a batch of calls that are not cached with the same number of single calls, both through forebay. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("verifiedNode.ts", ["16"]);
  const nodePort = (await node.message()) as number;
  const forebay = await startForebay(nodePort);
  try {
    // A call before the first head is refused.
    await untilReady(forebay);
    const times = { connections: CONNECTIONS, warmMs: short ? 500 : 1_000, measureMs: short ? 1_000 : 4_000 };
    const singles: Measured[] = [];
    const batches: Measured[] = [];
    for (let round = 0; round <= (short ? 3 : 5); round++) {
      const single = await measure(forebay, { ...times, body: SINGLE });
      const batch = await measure(forebay, { ...times, body: BATCH });
      // The first seconds are not counted, because code is being compiled.
      if (round > 0) {
        singles.push(single);
        batches.push(batch);
      }
    }
    const ours = medianOf(batches, "cpuMicroseconds");
    const theirs = medianOf(singles, "cpuMicroseconds") * CALLS;
    return {
      claim:
        "a batch of 20 calls that are not cached costs at most a fifth of 20 single calls, and is one node request",
      ratio: round(theirs / ours),
      ours: round(ours),
      yardstick: round(theirs),
      unit: "microseconds of CPU per 20 calls",
      unreadable: spread(singles.map(({ cpuMicroseconds }) => cpuMicroseconds)) > MAX_SPREAD,
      nodeRequests: await countRequests(forebay, node),
      oursMedianMs: round(medianOf(batches, "medianMs")),
      singleMedianMs: round(medianOf(singles, "medianMs")),
    };
  } finally {
    await forebay.end();
    await node.end();
  }
};
