import { type Child, startChild } from "./support/child.ts";
import { median, spread } from "./support/compareServers.ts";
import type { LoadResult } from "./support/load.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";
import type { VerifyServerOptions } from "./support/verifyServer.ts";

const BLOCK = "0x80";
/** A block of 150 full transactions, and its receipts. */
const BODIES = {
  block: `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["${BLOCK}",true]}`,
  receipts: `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":["${BLOCK}"]}`,
};
/** One request at a time, because equal requests in flight would be coalesced. */
const CONNECTIONS = 1;

interface Started {
  readonly child: Child;
  readonly port: number;
}

/** CPU time of the main thread for one request, in microseconds. */
const measure = async ({ child, port }: Started, body: string, times: { warmMs: number; measureMs: number }) => {
  const cpuSeconds = async (): Promise<number> => {
    child.send("cpu");
    return (await child.message()) as number;
  };
  const load = startChild("load.ts");
  try {
    load.send({ port, path: "/", body, connections: CONNECTIONS, ...times });
    await load.message();
    const before = await cpuSeconds();
    const { requests } = (await load.message()) as LoadResult;
    return (((await cpuSeconds()) - before) / requests) * 1e6;
  } finally {
    await load.end();
  }
};

const start = async (nodeUrl: string, verify: VerifyServerOptions["verify"]): Promise<Started> => {
  const child = startChild("verifyServer.ts");
  child.send({ nodeUrl, verify });
  return { child, port: (await child.message()) as number };
};

/** Compares the main thread's CPU time with full verification and with `verify: off`, in the same run. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("verifiedNode.ts");
  const children = [node];
  try {
    const nodeUrl = `http://127.0.0.1:${await node.message()}/`;
    const full = await start(nodeUrl, "full");
    children.push(full.child);
    const off = await start(nodeUrl, "off");
    children.push(off.child);
    const times = short ? { warmMs: 500, measureMs: 1_000 } : { warmMs: 1_000, measureMs: 3_000 };
    const rounds = short ? 3 : 9;
    const costs = {
      block: { full: [] as number[], off: [] as number[] },
      receipts: { full: [] as number[], off: [] as number[] },
    };
    for (let at = 0; at < rounds; at++) {
      for (const name of ["block", "receipts"] as const) {
        const order = at % 2 === 0 ? (["off", "full"] as const) : (["full", "off"] as const);
        for (const level of order) {
          costs[name][level].push(await measure(level === "full" ? full : off, BODIES[name], times));
        }
      }
    }
    const ratio = (name: "block" | "receipts"): number => median(costs[name].off) / median(costs[name].full);
    return {
      claim:
        "150 verified transactions or receipts cost the main thread at most 1.25 times as much as unverified: at least 0.80",
      ratio: round(Math.min(ratio("block"), ratio("receipts"))),
      ours: round(median(costs.block.full)),
      yardstick: round(median(costs.block.off)),
      unit: "microseconds of the main thread's CPU a block",
      unreadable: spread(costs.block.off) > MAX_SPREAD || spread(costs.receipts.off) > MAX_SPREAD,
      receiptsRatio: round(ratio("receipts")),
      receiptsMicroseconds: round(median(costs.receipts.full)),
      receiptsOffMicroseconds: round(median(costs.receipts.off)),
    };
  } finally {
    await Promise.all(children.map((child) => child.end()));
  }
};
