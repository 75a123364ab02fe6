import { startChild } from "./support/child.ts";
import { median, spread } from "./support/compareServers.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

const CONNECTIONS = 250;
const LOGS_A_FLASHBLOCK = 20;

interface Sent {
  readonly messages: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

type Which = "ours" | "bare";

const measure = async (which: Which, logs: number, short: boolean): Promise<Sent> => {
  const server = startChild("subscribeServer.ts", [which, String(logs)]);
  try {
    const readers = startChild("subscribeReaders.ts", [String(await server.message()), String(CONNECTIONS)]);
    try {
      await readers.message();
      server.send({ warmMs: short ? 500 : 1_000, measureMs: short ? 1_000 : 3_000 });
      return (await server.message()) as Sent;
    } finally {
      await readers.end();
    }
  } finally {
    await server.end();
  }
};

const compare = async (logs: number, short: boolean) => {
  const results: Record<Which, Sent[]> = { ours: [], bare: [] };
  for (let turn = 0; turn < (short ? 3 : 7); turn++) {
    const order = turn % 2 === 0 ? (["bare", "ours"] as const) : (["ours", "bare"] as const);
    for (const which of order) {
      results[which].push(await measure(which, logs, short));
    }
  }
  const perCpuSecond = (which: Which) => results[which].map(({ messages, cpuSeconds }) => messages / cpuSeconds);
  const perSecond = (which: Which) => median(results[which].map(({ messages, seconds }) => messages / seconds));
  return { perCpuSecond, perSecond, ratio: median(perCpuSecond("ours")) / median(perCpuSecond("bare")) };
};

/** Compares notifications to many subscriptions with a bare broadcast of the same bytes. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const { perCpuSecond, perSecond, ratio } = await compare(LOGS_A_FLASHBLOCK, short);
  const single = await compare(1, short);
  return {
    claim: "a notification to many subscriptions costs little more than a bare broadcast",
    ratio: round(ratio),
    ours: round(median(perCpuSecond("ours")), 0),
    yardstick: round(median(perCpuSecond("bare")), 0),
    unit: "messages per second of CPU",
    unreadable: spread(perCpuSecond("bare")) > MAX_SPREAD,
    oursPerSecond: round(perSecond("ours"), 0),
    yardstickPerSecond: round(perSecond("bare"), 0),
    // One message at a time on each connection, so that messages do not share a system call.
    ratioOfSingles: round(single.ratio),
  };
};
