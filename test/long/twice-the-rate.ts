import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { callsOf, forwardTo, startFront } from "../support/fakes/front.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { sendAtRate } from "./support/openLoad.ts";

/** Calls a second that one node answers. */
const RATE = 40;
const WHOLE_SECONDS = 8;
const MIN_ANSWERED = 0.95;
const MAX_CALLS_PER_READ = 1.2;
/** The last read waits for as long as the load lasts. */
const DEADLINE_MS = 20_000;
/** The reads of this time arrive at once. */
const BURST_MS = 50;
const METHOD = "eth_getBalance";
/** The numbers of nodes. */
const COUNTS = [1, 2] as const;

/** A node behind a front that answers RATE reads a second, and more reads that arrive at once with 429. */
const startNode = async (t: Lifespan) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  let tokens = RATE;
  let refilledMs = performance.now();
  let calls = 0;
  const front = await startFront(async (body) => {
    const count = callsOf(body).filter(({ method }) => method === METHOD).length;
    const nowMs = performance.now();
    calls += count;
    tokens = Math.min(RATE, tokens + ((nowMs - refilledMs) * RATE) / 1_000);
    refilledMs = nowMs;
    if (count > tokens) {
      return { status: 429, text: "too many requests" };
    }
    tokens -= count;
    return (await forwardTo(node.url, body)).text;
  });
  t.after(() => front.close());
  return { url: front.url, calls: () => calls };
};

/** Sends reads at twice the rate of the nodes for a time, and waits for all answers. */
const overload = (count: number, seconds: number) =>
  withLifespan(async (t) => {
    const nodes = await Promise.all(Array.from({ length: count }, () => startNode(t)));
    const service = await createService(
      {
        nodes: nodes.map(({ url }) => ({ url, batch: { maxCalls: 1 } })),
        ...{ upstream: { timeoutMs: DEADLINE_MS }, verify: "cheap" },
      },
      { cache: { memoryBytes: 0 } },
    );
    t.after(() => service.close());
    // A node without a head gets no reads.
    await until(async () => (await metric(service.opsUrl, "forebay_upstream_head")) !== 0, "the nodes have a head");
    let [reads, answered] = [0, 0];
    const endMs = performance.now() + seconds * 1_000;
    await sendAtRate(
      2 * RATE * count,
      () => performance.now() >= endMs,
      async (at) => {
        reads++;
        const read = rpc(service.url, METHOD, [`0x${(at + 1).toString(16).padStart(40, "0")}`, "0x1"]);
        const { body } = await read.catch(() => ({ body: {} as { result?: unknown } }));
        answered += body.result === undefined ? 0 : 1;
      },
      BURST_MS,
    );
    const calls = nodes.reduce((sum, node) => sum + node.calls(), 0);
    return { nodes: count, reads, answered, callsPerRead: calls / reads };
  });

/** Of reads at twice the rate of one or two nodes, at least 95 % are answered, with at most 1.2 calls each. */
export const long = async ({ seconds }: LongOptions) => {
  const each = Math.min(WHOLE_SECONDS, (seconds ?? Number.POSITIVE_INFINITY) / COUNTS.length);
  const results: Awaited<ReturnType<typeof overload>>[] = [];
  for (const count of COUNTS) {
    results.push(await overload(count, each));
  }
  const passed = results.every(
    ({ reads, answered, callsPerRead }) => answered >= MIN_ANSWERED * reads && callsPerRead <= MAX_CALLS_PER_READ,
  );
  return { claim: "at twice the rate of their nodes, 95 % of reads are answered", results, passed };
};
