import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { callsOf, forwardTo, startFront } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";

/** Calls a second that one node answers. */
const RATE = 40;
const SECONDS = 8;
const TICK_MS = 50;
const MIN_ANSWERED = 0.95;
const MAX_CALLS_PER_READ = 1.2;
/** The last read waits for as long as the load lasts. */
const DEADLINE_MS = 20_000;
const METHOD = "eth_getBalance";

/** `limited`: it answers more reads that arrive at once with 429. `slow`: it answers them one after the other. */
type Kind = "limited" | "slow";

/** A node behind a front that answers RATE reads a second. */
const startNode = async (t: TestContext, kind: Kind) => {
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
  t.after(async () => {
    await front.close();
    await node.close();
  });
  return { url: front.url, calls: () => calls };
};

for (const [kind, count, options] of [
  ["limited", 1, { batch: { maxCalls: 1 } }],
  ["limited", 2, { batch: { maxCalls: 1 } }],
  ["slow", 1, { concurrency: 16 }],
] as const) {
  test(`of reads at twice the rate of ${count} ${kind} nodes, 95 % are answered`, async (t) => {
    const nodes = await Promise.all(Array.from({ length: count }, () => startNode(t, kind)));
    const service = await createService(
      { nodes: nodes.map(({ url }) => ({ url, ...options })), upstream: { timeoutMs: DEADLINE_MS }, verify: "cheap" },
      { cache: { memoryBytes: 0 } },
    );
    t.after(() => service.close());
    while ((await metric(service.opsUrl, "forebay_upstream_head")) === 0) {
      // A node without a head gets no reads.
    }
    const reads: Promise<boolean>[] = [];
    const startMs = performance.now();
    const dueAt = (nowMs: number) => ((nowMs - startMs) / 1_000) * 2 * RATE * count;
    while (performance.now() - startMs < SECONDS * 1_000) {
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
    t.diagnostic(`${answered} of ${reads.length} reads, ${(calls / reads.length).toFixed(2)} calls a read`);
    assert.ok(answered >= MIN_ANSWERED * reads.length, `${answered} of ${reads.length}`);
    assert.ok(calls <= MAX_CALLS_PER_READ * reads.length, `${calls} calls for ${reads.length} reads`);
  });
}
