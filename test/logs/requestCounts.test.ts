import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readLogs } from "./askLogs.ts";
import { createFakeChain, type FakeBlock, fakeAddress, fakeHeads, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, type FakeLogNode, nodeError } from "./fakeLogNode.ts";
import { createMemoryStore } from "./memoryStore.ts";

/** Every 50th block has a log. */
const createChain = (length: number): FakeBlock[] => {
  const logs = [{ address: fakeAddress(1), topics: [], data: "0x" as const }];
  const none: typeof logs = [];
  return createFakeChain(Array.from({ length }, (_, number) => (number % 50 === 7 ? logs : none)));
};

const CHAIN = createChain(110_000);
const HEADS = fakeHeads(CHAIN, { finalized: 109_000 });

/** Creates a node that accepts up to `maxBlocks` blocks. */
const createNode = (maxBlocks: number): FakeLogNode =>
  createFakeLogNode({
    chain: CHAIN,
    onLogs: ({ from, to }) =>
      to - from + 1 > maxBlocks ? nodeError(`eth_getLogs is limited to a ${maxBlocks} range`) : undefined,
  });

const sizesOf = ({ logsRequests }: FakeLogNode): number[] => logsRequests.map(({ from, to }) => to - from + 1);

const cases = [
  { name: "final blocks", blocks: range(37, 50_036) },
  { name: "final blocks and then recent ones up to the head", blocks: range(60_000, 109_999) },
];
for (const { name, blocks } of cases) {
  test(`50,000 unaligned blocks need 26 requests: ${name}`, async () => {
    const node = createNode(1_999);
    const store = createMemoryStore();
    const split = createSplit([node], { store });
    const answer = await split.request(ANY, blocks, createContext({ heads: HEADS }));
    assert.deepEqual(await readLogs(answer), plainScan(CHAIN, ANY, blocks));
    assert.equal(answer.status.stored, true);
    assert.equal(node.logsRequests.length, 26);
    assert.ok(Math.max(...sizesOf(node)) < 2_000);

    const { calls } = node;
    const count = calls.length;
    const again = await split.request(ANY, blocks, createContext({ heads: HEADS }));
    assert.deepEqual(await readLogs(again), plainScan(CHAIN, ANY, blocks));
    assert.deepEqual(again.status, { hit: "memory" });
    assert.equal(calls.length, count);
  });

  test(`50,000 unaligned blocks of a node that accepts 1,000 need few requests beyond 50: ${name}`, async () => {
    const node = createNode(1_000);
    const split = createSplit([node]);
    const answer = await split.request(ANY, blocks, createContext({ heads: HEADS }));
    assert.deepEqual(await readLogs(answer), plainScan(CHAIN, ANY, blocks));
    const refused = sizesOf(node).filter((size) => size > 1_000);
    // The first request is refused. One larger range follows after each ten accepted ones.
    assert.ok(refused.length <= 1 + 50 / 10, `${refused.length} refused`);
    assert.ok(node.logsRequests.length <= 60, `${node.logsRequests.length} requests`);
  });
}

test("a segment that two fetch ranges cut is cached as one, also above the finalized block", async () => {
  const store = createMemoryStore();
  // The first node accepts 999 blocks after its refusal, and these are four times as many.
  const blocks = range(106_004, 109_999);
  const first = createNode(1_000);
  await readLogs(await createSplit([first], { store }).request(ANY, blocks, createContext({ heads: HEADS })));
  const cut = first.logsRequests.filter(({ to }) => (to + 1) % 128 !== 0 && to !== 109_999);
  assert.ok(cut.length > 0);
  const keys = [...store.entries.keys()].map((key) => key.split(":")[2]);
  const expected = 4_000 / 128;
  assert.ok(keys.length >= expected && keys.length <= expected + 3, `${keys}`);
  assert.ok(keys.includes("109056-109183"), "the segment above the finalized block");
});

test("a small query needs one request, whether its blocks are final or not", async () => {
  const node = createNode(2_000);
  const blocks = range(108_500, 109_999);
  const answer = await createSplit([node]).request(ANY, blocks, createContext({ heads: HEADS }));
  assert.deepEqual(await readLogs(answer), plainScan(CHAIN, ANY, blocks));
  assert.deepEqual(sizesOf(node), [1_500]);
});

test("if no node has both the old and the recent blocks, the range is split at the finalized block", async () => {
  const archive = createFakeLogNode({ chain: CHAIN, name: "archive", head: 109_500, machineHead: 109_500 });
  const pruned = createFakeLogNode({ chain: CHAIN, name: "pruned", prunedBelow: 108_900 });
  const blocks = range(108_500, 109_999);
  const answer = await createSplit([archive, pruned]).request(ANY, blocks, createContext({ heads: HEADS }));
  assert.deepEqual(await readLogs(answer), plainScan(CHAIN, ANY, blocks));
});
