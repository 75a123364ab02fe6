import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { hashesOf, mineFor, trackHeads } from "./trackHeads.ts";

test("a reorganisation is published with the replaced and the new blocks", async (t) => {
  const setup = await trackHeads(t, { height: 50 });
  await mineFor(setup, 4_000, 2_000, () => setup.heads.markActive());
  await setup.heads.refresh();
  const before = hashesOf(setup.chain.blocks.slice(-3));
  setup.chain.reorg(3, 4);
  await setup.heads.refresh();
  const change = setup.changes.findLast(({ from }) => from.length > 0);
  assert.deepEqual(hashesOf(change?.from ?? []), before);
  assert.deepEqual(hashesOf(change?.to ?? []), hashesOf(setup.chain.blocks.slice(-4)));
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.match(await setup.telemetry.registry.metrics(), /forebay_reorg_depth_blocks_count\{chain="test"\} 1/);
});

test("soon after the start, a reorganisation below the short ring is served within seconds", async (t) => {
  const setup = await trackHeads(t, { height: 50 });
  const oldest = setup.heads.current()?.oldest;
  assert.ok(oldest !== undefined && oldest > 44n, "the ring is short");
  setup.chain.reorg(8, 9);
  await mineFor(setup, 7_000, 2_000, () => setup.heads.markActive());
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
});

test("the served chain follows a reorganisation at the same height, to a shorter chain, and of all blocks", async (t) => {
  const setup = await trackHeads(t, { height: 40, finality: { depth: 5 } });
  await mineFor(setup, 10_000, 2_000, () => setup.heads.markActive());
  for (const [depth, count] of [
    [2, 2],
    [5, 2],
    [30, 3],
    [1, 1],
  ] as const) {
    setup.chain.reorg(depth, count);
    await setup.heads.refresh();
    // One origin alone may have a machine on a replaced branch.
    await mineFor(setup, 2_500, 100_000, () => setup.heads.markActive());
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash, `${depth} replaced by ${count}`);
  }
  const other = createFakeChain({ seed: "other", height: 7 });
  setup.node.chain = other;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, other.latest.hash);
  assert.equal(setup.identity.genesis, other.blocks[0]?.hash);
});

test("the served chain follows a chain that restarts far below it", async (t) => {
  const setup = await trackHeads(t, { height: 20_000 });
  const other = createFakeChain({ seed: "other", height: 3 });
  setup.node.chain = other;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, other.latest.hash);
  assert.equal(setup.identity.genesis, other.blocks[0]?.hash);
});

test("a node that lags, restarts, or reports height 0 does not move the head back", async (t) => {
  const setup = await trackHeads(t, { height: 30 });
  await mineFor(setup, 4_000, 2_000, () => setup.heads.markActive());
  const { latest } = await setup.heads.refresh();
  for (const height of [29, 12, 0]) {
    setup.node.height = height;
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest, latest);
    assert.equal(setup.node.head, BigInt(height));
  }
  setup.node.height = undefined;
  setup.chain.rewind(20);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest, latest);
  setup.chain.mine();
  await setup.heads.refresh();
  await mineFor(setup, 2_500, 100_000, () => setup.heads.markActive());
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(setup.changes.filter(({ from }) => from.length > 0).length, 1);
});

test("without agreement the highest head of several nodes is served, and a lower one on an old branch has no effect", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 2, agree: 1 });
  const [, second] = setup.nodes as [ChainNode, ChainNode];
  await mineFor(setup, 2_000, 100_000, () => setup.heads.markActive());
  second.chain = createFakeChain({ height: 30 });
  second.chain.reorg(3, 2);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(second.head, 29n);
  second.chain.mine(2);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, second.chain.latest.hash);
});

test("a head far ahead is dropped once its node does not have it, and the node's chain is served again", async (t) => {
  for (const nodes of [1, 2]) {
    const setup = await trackHeads(t, { height: 30, nodes, agree: 1 });
    await mineFor(setup, 4_000, 2_000, () => setup.heads.markActive());
    const ahead = createFakeChain({ height: 30 });
    ahead.mine(3_000);
    setup.node.chain = ahead;
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest.hash, ahead.latest.hash, "no node contradicts it");
    setup.node.chain = setup.chain;
    await mineFor(setup, 10_000, 2_000, () => setup.heads.markActive());
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash, `${nodes} nodes`);
    assert.equal(setup.heads.current()?.at(7n)?.hash, setup.chain.blocks[7]?.hash);
  }
});

test("a wrong first head of one of two origins is dropped", async (t) => {
  const wrong = createFakeChain({ seed: "other", height: 5_000 });
  const setup = await trackHeads(t, { height: 30, nodes: 2, firstChain: wrong });
  setup.node.chain = setup.chain;
  await mineFor(setup, 6_000, 2_000, () => setup.heads.markActive());
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
});

test("a head that its node does not have is dropped if another node's head is below it", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 2, agree: 1 });
  await mineFor(setup, 4_000, 2_000, () => setup.heads.markActive());
  const before = setup.chain.latest;
  const ahead = createFakeChain({ height: Number(before.number) });
  ahead.mine();
  setup.node.chain = ahead;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, ahead.latest.hash);
  setup.node.chain = setup.chain;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, ahead.latest.hash, "one machine may be behind another");
  await mineFor(setup, 20_000, 100_000, () => setup.heads.markActive());
  assert.equal(setup.heads.current()?.latest.hash, before.hash);
});

test("impossible block numbers are ignored as heads", async (t) => {
  const setup = await trackHeads(t, { height: 30 });
  const { latest } = await setup.heads.refresh();
  const { json } = setup.chain.latest;
  const send = setup.node.send;
  for (const number of [2n ** 53n, 2n ** 60n, 2n ** 256n - 1n]) {
    setup.node.send = async (call, reach) =>
      call.params[0] === "latest"
        ? Buffer.from(JSON.stringify({ ...json, number: `0x${number.toString(16)}` }))
        : send(call, reach);
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest, latest);
    assert.equal(setup.node.head, 30n);
  }
});
