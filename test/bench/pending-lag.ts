import { once } from "node:events";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { createDevnet } from "../devnet/devnet.ts";
import type { MetadataGeneration } from "../devnet/flashblock.ts";
import { startTraffic } from "../devnet/traffic.ts";
import { startConfigured } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, quantile, round } from "./support/result.ts";

const TRANSFERS_A_MESSAGE = 10;
const FLASHBLOCK_MS = 200;
const WARM_MS = 8_000;

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["pending",false]}';
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

const ask = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const call = request({ agent, port, host: "127.0.0.1", method: "POST", path: "/", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    });
    call.on("error", reject);
    call.end(BODY);
  });

/** The lags of one run, in milliseconds. */
interface Lags {
  readonly lagsMs: readonly number[];
  readonly answers: number;
  readonly unseen: number;
}

/** Sends requests in sequence. Measures when the hash of each message first appears, compared with a bare client. */
const measure = async (port: number, feedUrl: string, durationMs: number): Promise<Lags> => {
  const parsedAtMs = new Map<string, number>();
  const answeredAtMs = new Map<string, number>();
  let answers = 0;
  const bare = new WebSocket(feedUrl);
  bare.on("message", (data) => {
    const { diff } = JSON.parse(data.toString()) as { diff: { block_hash: string; transactions: unknown[] } };
    if (diff.transactions.length > 0) {
      parsedAtMs.set(diff.block_hash, performance.now());
    }
  });
  await once(bare, "open");
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs) {
    const [, hash = ""] = /"hash":"(0x[0-9a-f]{64})"/.exec(await ask(port)) ?? [];
    answers++;
    if (!answeredAtMs.has(hash)) {
      answeredAtMs.set(hash, performance.now());
    }
  }
  bare.close();
  const lagsMs = [...parsedAtMs].flatMap(([hash, atMs]) => {
    const answered = answeredAtMs.get(hash);
    return answered === undefined ? [] : [answered - atMs];
  });
  return { lagsMs, answers, unseen: parsedAtMs.size - lagsMs.length };
};

/** Measures the lags of a service. */
const measureLags = async (generation: MetadataGeneration, durationMs: number): Promise<Lags> => {
  await using devnet = await createDevnet({ generation, flashblockMs: FLASHBLOCK_MS });
  if (!devnet.feedUrl) {
    throw new Error("no feed");
  }
  const server = await startConfigured({
    chains: [
      {
        ...{ name: "chain", nodes: [{ url: devnet.url }], forks: "isthmus", quirks: { anvilDepositNonce: true } },
        pending: { feeds: [devnet.feedUrl] },
      },
    ],
    server: { port: 0, opsPort: 0 },
  });
  try {
    const rate = (TRANSFERS_A_MESSAGE * 1_000) / FLASHBLOCK_MS;
    const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate, kinds: ["token"] });
    await sleep(WARM_MS);
    const lags = await measure(server.port, devnet.feedUrl, durationMs);
    await traffic.stop();
    return lags;
  } finally {
    await server.end();
  }
};

/** Measures how much later than a bare client of the feed a client of forebay sees an executed message. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const durationMs = short ? 5_000 : 30_000;
  const seen = await measureLags("a", durationMs);
  const executed = await measureLags("e", durationMs);
  const limits = { seenMedian: 10, seenP99: 25, executedMedian: 25, executedP99: 60 };
  const [seenMedian, seenP99] = [quantile(seen.lagsMs, 0.5), quantile(seen.lagsMs, 0.99)];
  const [executedMedian, executedP99] = [quantile(executed.lagsMs, 0.5), quantile(executed.lagsMs, 0.99)];
  return {
    claim:
      "a message is in an answer at most 10 ms (p99 25) after a bare client has it; 25 (60) without receipts in it",
    ratio: round(Math.min(limits.seenMedian / seenMedian, limits.executedMedian / executedMedian)),
    ours: round(seenMedian),
    yardstick: limits.seenMedian,
    unit: "ms later than a bare client, median, receipts in the metadata",
    toldP99Ms: round(seenP99),
    executedMedianMs: round(executedMedian),
    executedP99Ms: round(executedP99),
    messages: seen.lagsMs.length + executed.lagsMs.length,
    unseen: seen.unseen + executed.unseen,
    answers: seen.answers + executed.answers,
  };
};
