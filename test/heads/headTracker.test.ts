import assert from "node:assert/strict";
import { test } from "node:test";
import { mineFor, trackHeads } from "./trackHeads.ts";

test("an idle chain with 2 s blocks needs at most 50 calls a minute, from the first minute on", async (t) => {
  const setup = await trackHeads(t, { height: 5_000 });
  for (let minute = 0; minute < 4; minute += 1) {
    const before = minute === 0 ? 0 : setup.node.calls;
    await mineFor(setup, 60_000, 2_000);
    assert.ok(setup.node.calls - before <= 50, `${setup.node.calls - before} calls in minute ${minute}`);
  }
  const { latest } = setup.heads.current() ?? {};
  assert.ok(latest && setup.chain.latest.number - latest.number <= 1n);
});

for (const blockMs of [200, 2_000, 12_000]) {
  test(`with clients and ${blockMs} ms blocks, a node's new head is served within 1 s`, async (t) => {
    const setup = await trackHeads(t, { height: 300, secondsPerBlock: blockMs / 1000 });
    let behindMs = 0;
    await mineFor(setup, 60_000, blockMs, () => {
      setup.heads.markActive();
      const isServed = setup.heads.current()?.latest.hash === setup.chain.latest.hash;
      behindMs = isServed || blockMs === 200 ? 0 : behindMs + 100;
      assert.ok(behindMs <= 1_000, `${behindMs} ms behind`);
    });
    assert.ok(
      Math.abs(setup.heads.blockTimeMs - blockMs) < blockMs / 5,
      `measured block time ${setup.heads.blockTimeMs}`,
    );
    const served = setup.changes.flatMap(({ to }) => to.map(({ number }) => number));
    assert.deepEqual(
      served,
      [...served].sort((a, b) => Number(a - b)),
      "every block is published once, in order",
    );
    const { latest } = setup.heads.current() ?? {};
    assert.ok(latest && setup.chain.latest.number - latest.number <= 2n);
  });
}

test("missed blocks are read, and after too many of them a new ring starts", async (t) => {
  const setup = await trackHeads(t, { height: 30 });
  setup.chain.mine(700);
  await setup.heads.refresh();
  assert.equal(setup.changes.at(-1)?.to.length, 700);
  setup.chain.mine(3_000);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(setup.changes.at(-1)?.from.length, 0);
  assert.equal(setup.heads.current()?.oldest, setup.chain.latest.number - 1n);
});

test("the ring has 300 blocks after the start, and fills down to a block that is read", async (t) => {
  const setup = await trackHeads(t, { height: 2_000 });
  await mineFor(setup, 60_000, 60_000, () => setup.heads.markActive());
  const before = setup.heads.current();
  assert.ok(before && before.latest.number - before.oldest <= 301n);
  assert.equal(before.at(1_500n), undefined);
  await mineFor(setup, 60_000, 60_000, () => setup.heads.markActive());
  const after = setup.heads.current();
  assert.equal(after?.at(1_500n)?.hash, setup.chain.blocks[1_500]?.hash);
  assert.equal(after?.oldest, 1_500n);
});

test("with clients, the ring fills quickly, with full headers of the newest 256 blocks", async (t) => {
  const setup = await trackHeads(t, { height: 2_000 });
  setup.heads.current()?.at(0n);
  await mineFor(setup, 60_000, 2_000, () => setup.heads.markActive());
  const heads = setup.heads.current();
  assert.ok(heads);
  assert.equal(heads.oldest, 0n);
  assert.equal(heads.at(7n)?.hash, setup.chain.blocks[7]?.hash);
  assert.equal(
    heads.header(heads.latest.number - 255n)?.stateRoot,
    setup.chain.blocks[Number(heads.latest.number) - 255]?.json.stateRoot,
  );
  assert.equal(heads.header(heads.latest.number - 256n), undefined);
});

test("safe and finalized are read from the node, never move back, and are never estimated", async (t) => {
  const setup = await trackHeads(t, { height: 30 });
  await mineFor(setup, 14_000, 2_000, () => setup.heads.markActive());
  const { safe, finalized } = setup.heads.current() ?? {};
  assert.ok(safe && finalized && safe.number > finalized.number);
  assert.equal(safe.hash, setup.chain.blocks[Number(safe.number)]?.hash);
  setup.node.lag = 10;
  await mineFor(setup, 14_000, 100_000, () => setup.heads.markActive());
  assert.deepEqual(setup.heads.current()?.finalized, finalized);
  setup.node.down = true;
  await mineFor(setup, 14_000, 100_000, () => setup.heads.markActive());
  assert.deepEqual(setup.heads.current()?.finalized, finalized);
});

test("finality by depth follows the head, even before the ring reaches that depth", async (t) => {
  const setup = await trackHeads(t, { height: 500, finality: { depth: 64 } });
  await mineFor(setup, 1_000, 100_000, () => setup.heads.markActive());
  assert.equal(setup.heads.current()?.finalized?.hash, setup.chain.blocks[500 - 64]?.hash);
  await mineFor(setup, 20_000, 2_000, () => setup.heads.markActive());
  const heads = setup.heads.current();
  assert.equal(heads?.finalized?.number, heads && heads.latest.number - 64n);
});

test("concurrent refreshes share requests and end after 500 ms, and next waits for one change", async (t) => {
  const setup = await trackHeads(t, { height: 30 });
  const before = setup.node.calls;
  const next = setup.heads.next(new AbortController().signal);
  setup.chain.mine();
  const [one, other] = await Promise.all([setup.heads.refresh(), setup.heads.refresh()]);
  assert.equal(one, other);
  assert.equal(setup.node.calls, before + 1);
  assert.equal((await next).heads.latest.hash, setup.chain.latest.hash);
  setup.node.send = () => new Promise(() => undefined);
  const slow = setup.heads.refresh();
  await setup.clock.advance(500);
  assert.equal((await slow).latest.hash, setup.chain.latest.hash);
  const leaving = new AbortController();
  const never = setup.heads.next(leaving.signal);
  leaving.abort();
  await assert.rejects(never);
});
