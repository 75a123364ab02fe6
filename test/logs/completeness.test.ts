import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readLogs } from "./askLogs.ts";
import { chainOf } from "./chainOf.ts";
import { createFakeChain, fakeAddress, fakeHeads, fakeTopic, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, nodeError } from "./fakeLogNode.ts";

test("a node of several machines that last reported an older head gets time to catch up", async () => {
  const chain = chainOf(400);
  let reads = 0;
  const node = createFakeLogNode({
    chain,
    get head() {
      return reads++ < 3 ? 398 : 399;
    },
  });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 100 }) });
  const answer = await createSplit([node]).request(ANY, range(390, 399), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(390, 399)));
  assert.ok(reads > 3);
});

test("recent blocks whose bloom matches, but whose logs have too few topics, share one second request", async () => {
  const transfer = fakeTopic(0);
  const fungible = { address: fakeAddress(1), topics: [transfer, fakeTopic(1), fakeTopic(2)], data: "0x22" as const };
  const unique = { ...fungible, topics: [...fungible.topics, fakeTopic(3)] };
  const chain = createFakeChain(Array.from({ length: 100 }, (_, at) => (at % 50 === 7 ? [unique] : [fungible])));
  const node = createFakeLogNode({ chain });
  const filter = { addresses: [], topics: [[transfer], [], [], []] };
  const context = createContext({ heads: fakeHeads(chain, { finalized: 0 }) });
  const answer = await createSplit([node]).request(filter, range(1, 99), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, filter, range(1, 99)));
  assert.equal(node.logsRequests.length, 2);

  // The first response of this node lacks logs at the end of the range.
  const lagging = createFakeLogNode({
    chain,
    change: (logs, { filter: { topics } }) => (topics.length === 4 ? logs.slice(0, 1) : logs),
  });
  const complete = await createSplit([lagging]).request(filter, range(1, 99), context);
  assert.deepEqual(await readLogs(complete), plainScan(chain, filter, range(1, 99)));
});

test("logs that a node leaves out come from another node", async () => {
  const chain = chainOf(300);
  const liar = createFakeLogNode({ chain, name: "liar", change: () => [] });
  const good = createFakeLogNode({ chain, name: "good" });
  for (const finalized of [99, 200, 299]) {
    const context = createContext({ heads: fakeHeads(chain, { finalized }) });
    for (const nodes of [
      [liar, good],
      [good, liar],
    ]) {
      const answer = await createSplit(nodes).request(ANY, range(100, 299), context);
      assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(100, 299)), `finalized ${finalized}`);
    }
  }
  // If no other node can answer, the node itself is asked again.
  const alone = createFakeLogNode({ chain, name: "alone", change: (logs, { byHash }) => (byHash ? logs : []) });
  const recent = createContext({ heads: fakeHeads(chain, { finalized: 99 }) });
  const answer = await createSplit([alone]).request(ANY, range(100, 299), recent);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(100, 299)));
});

test("a node that returns [] for pruned blocks is detected, and gets no further request for them", async () => {
  const chain = chainOf(20_000, 50);
  const pruned = createFakeLogNode({ chain, name: "pruned", prunedBelow: 15_000 });
  const archive = createFakeLogNode({ chain, name: "archive" });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 19_900 }) });
  const answer = await createSplit([pruned, archive]).request(ANY, range(1, 12_000), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(1, 12_000)));
  const alone = createFakeLogNode({ chain, name: "pruned", prunedBelow: 15_000 });
  await assert.rejects(createSplit([alone]).request(ANY, range(1, 12_000), context), /pruned|No node has/);
});

test("[] by the hash of a final block is no answer of a node that has pruned the block", async () => {
  const chain = chainOf(300);
  const context = createContext({ heads: fakeHeads(chain, { finalized: 150 }) });
  const create = () => [
    createFakeLogNode({ chain, name: "pruned", prunedBelow: 151 }),
    createFakeLogNode({ chain, name: "archive" }),
  ];
  const blockHash = chain[99]?.hash ?? "0x";
  for (const nodes of [create(), create().reverse()]) {
    const answer = await createSplit(nodes).request(ANY, { blockHash }, context);
    assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(99, 99)));
  }
  await assert.rejects(createSplit(create().slice(0, 1)).request(ANY, { blockHash }, context), /pruned|No node has/);
});

test("a range whose end one node leaves out, and another one has pruned, is not answered", async () => {
  const chain = chainOf(300);
  const context = createContext({ heads: fakeHeads(chain, { finalized: 150 }) });
  const lagging = createFakeLogNode({
    chain,
    name: "lagging",
    onLogs: ({ from, to }) => (to - from >= 60 ? nodeError("limited to a 60 range") : undefined),
    change: (logs, { to, byHash }) => logs.filter((log) => byHash || Number(Object(log).blockNumber) <= to - 4),
  });
  const pruned = createFakeLogNode({
    chain,
    name: "pruned",
    prunedBelow: 151,
    onLogs: ({ byHash }) => (byHash ? undefined : nodeError("gateway broke", -32603, "unreachable")),
  });
  await assert.rejects(createSplit([lagging, pruned]).request(ANY, range(100, 200), context), { name: "NodeError" });
});

test("a node that prunes its history is checked again: what it had ten minutes ago may be gone", async () => {
  const chain = chainOf(20_000, 50);
  const node = createFakeLogNode({ chain });
  let nowMs = 0;
  const split = createSplit([node], { clock: { nowMs: () => nowMs, sleep: async () => undefined } });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 19_900 }) });
  assert.deepEqual(
    await readLogs(await split.request(ANY, range(1, 1_000), context)),
    plainScan(chain, ANY, range(1, 1_000)),
  );
  node.options.prunedBelow = 15_000;
  nowMs = 600_001;
  await assert.rejects(split.request(ANY, range(1_100, 1_200), context), /pruned|No node has/);
});
