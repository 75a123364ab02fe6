import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { callsOf, forwardTo, startFront } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";
import type { LongOptions } from "./support/memory.ts";

/** Calls a second that one node answers. */
const RATE = 40;
const WHOLE_SECONDS = 8;
const TICK_MS = 50;
const MIN_ANSWERED = 0.95;
const MAX_CALLS_PER_READ = 1.2;
/** The last read waits for as long as the load lasts. */
const DEADLINE_MS = 20_000;
const METHOD = "eth_getBalance";

/** `limited`: the node answers more reads that arrive at once with 429. `slow`: it answers them one after the other. */
const CASES = [
  { kind: "limited", count: 1, options: { batch: { maxCalls: 1 } } },
  { kind: "limited", count: 2, options: { batch: { maxCalls: 1 } } },
  { kind: "slow", count: 1, options: { concurrency: 16 } },
] as const;

type Case = (typeof CASES)[number];
type Ends = (() => Promise<unknown>)[];

/** A node behind a front that answers RATE reads a second. */
const startNode = async (ends: Ends, kind: Case["kind"]) => {
  const node = await createFakeNode();
  let tokens = RATE;
  let refilledMs = performance.now();
  let freeMs = refilledMs;
  let calls = 0;
  const front = await startFront(async (body) => {
    const count = callsOf(body).filter(({ method }) => method === METHOD).length;
    const nowMs = performance.now();
    calls += count;
    if (count > 0 && kind === "slow") {
      freeMs = Math.max(freeMs, nowMs) + (count * 1_000) / RATE;
      await sleep(freeMs - nowMs);
    }
    tokens = Math.min(RATE, tokens + ((nowMs - refilledMs) * RATE) / 1_000);
    refilledMs = nowMs;
    if (count > tokens && kind === "limited") {
      return { status: 429, text: "too many requests" };
    }
    tokens -= count;
    return (await forwardTo(node.url, body)).text;
  });
  ends.unshift(
    () => front.close(),
    () => node.close(),
  );
  return { url: front.url, calls: () => calls };
};

/** Sends reads at twice the rate of the nodes for a time, and waits for all answers. */
const overload = async ({ kind, count, options }: Case, seconds: number, ends: Ends) => {
  const nodes = await Promise.all(Array.from({ length: count }, () => startNode(ends, kind)));
  const service = await createService(
    { nodes: nodes.map(({ url }) => ({ url, ...options })), upstream: { timeoutMs: DEADLINE_MS }, verify: "cheap" },
    { cache: { memoryBytes: 0 } },
  );
  ends.unshift(() => service.close());
  // A node without a head gets no reads.
  await until(async () => (await metric(service.opsUrl, "forebay_upstream_head")) !== 0, "the nodes have a head");
  const reads: Promise<boolean>[] = [];
  const startMs = performance.now();
  const dueAt = (nowMs: number) => ((nowMs - startMs) / 1_000) * 2 * RATE * count;
  while (performance.now() - startMs < seconds * 1_000) {
    while (reads.length < dueAt(performance.now())) {
      const address = `0x${(reads.length + 1).toString(16).padStart(40, "0")}`;
      reads.push(
        rpc(service.url, METHOD, [address, "0x1"]).then(
          ({ body }) => body.result !== undefined,
          () => false,
        ),
      );
    }
    await sleep(TICK_MS);
  }
  const answered = (await Promise.all(reads)).filter(Boolean).length;
  const calls = nodes.reduce((sum, node) => sum + node.calls(), 0);
  return { nodes: `${count} ${kind}`, reads: reads.length, answered, callsPerRead: calls / reads.length };
};

/** Of reads at twice the rate of one or two nodes, at least 95 % are answered, with at most 1.2 calls each. */
export const long = async ({ seconds }: LongOptions) => {
  const each = Math.min(WHOLE_SECONDS, (seconds ?? Number.POSITIVE_INFINITY) / CASES.length);
  const results: Awaited<ReturnType<typeof overload>>[] = [];
  for (const nodes of CASES) {
    const ends: Ends = [];
    try {
      results.push(await overload(nodes, each, ends));
    } finally {
      for (const end of ends) {
        await end();
      }
    }
  }
  const passed = results.every(
    ({ reads, answered, callsPerRead }) => answered >= MIN_ANSWERED * reads && callsPerRead <= MAX_CALLS_PER_READ,
  );
  return { claim: "at twice the rate of their nodes, 95 % of reads are answered", results, passed };
};
