import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HeadChange } from "../../src/core/heads.ts";
import type { Finality } from "../../src/heads/canonicalChain.ts";
import { ChainIdentity } from "../../src/heads/chainIdentity.ts";
import { createHeadTracker } from "../../src/heads/headTracker.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain, type FakeChain, type FakeChainOptions } from "../support/fakes/fakeChain.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";
import { type ChainNode, createChainNode } from "../support/servers/chainNode.ts";

interface Setup extends FakeChainOptions {
  readonly nodes?: number;
  readonly finality?: Finality;
  /** The first node's chain when it is first read. */
  readonly firstChain?: FakeChain;
}

const setUp = async (t: TestContext, { nodes = 1, finality = "node", firstChain, ...chainOptions }: Setup = {}) => {
  const clock = createFakeClock();
  const telemetry = silent();
  const chain = createFakeChain(chainOptions);
  const ending = new AbortController();
  t.after(() => ending.abort());
  const { signal } = ending;
  const all = Array.from({ length: nodes }, (_, index) => createChainNode(`node${index + 1}`, chain));
  const identity = new ChainIdentity({
    ...{ chain: "test", chainId: undefined, nodes: all, telemetry, signal },
    onIdentified: () => undefined,
  });
  const heads = createHeadTracker({ chain: "test", finality, clock, identity }, telemetry, signal);
  const changes: HeadChange[] = [];
  heads.subscribe((change) => changes.push(change));
  const [node] = all as [ChainNode];
  for (const node of all) {
    await identity.verify(node);
    node.calls = 0;
    heads.follow(node);
  }
  node.chain = firstChain ?? chain;
  await clock.advance(0);
  return { clock, telemetry, chain, identity, heads, changes, node, nodes: all };
};

/** Advances fake time by `totalMs`, with a block every `blockMs`. Calls `each` every `stepMs`. */
const run = async (
  { clock, chain }: { clock: ReturnType<typeof createFakeClock>; chain: FakeChain },
  totalMs: number,
  blockMs: number,
  each: () => void = () => undefined,
  stepMs = 100,
) => {
  for (let elapsedMs = stepMs; elapsedMs <= totalMs; elapsedMs += stepMs) {
    await clock.advance(stepMs);
    if (elapsedMs % blockMs === 0) {
      chain.mine();
    }
    each();
  }
};

const hashes = (blocks: readonly { hash: string }[]) => blocks.map(({ hash }) => hash);

test("an idle chain with 2 s blocks needs at most 50 calls a minute, from the first minute on", async (t) => {
  const setup = await setUp(t, { height: 5_000 });
  for (let minute = 0; minute < 4; minute += 1) {
    const before = minute === 0 ? 0 : setup.node.calls;
    await run(setup, 60_000, 2_000);
    assert.ok(setup.node.calls - before <= 50, `${setup.node.calls - before} calls in minute ${minute}`);
  }
  const { latest } = setup.heads.current() ?? {};
  assert.ok(latest && setup.chain.latest.number - latest.number <= 1n);
});

for (const blockMs of [200, 2_000, 12_000]) {
  test(`with clients and ${blockMs} ms blocks, a node's new head is served within 1 s`, async (t) => {
    const setup = await setUp(t, { height: 300, secondsPerBlock: blockMs / 1000 });
    let behindMs = 0;
    await run(setup, 60_000, blockMs, () => {
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

test("a reorganisation is published with the replaced and the new blocks", async (t) => {
  const setup = await setUp(t, { height: 50 });
  await run(setup, 4_000, 2_000, () => setup.heads.markActive());
  await setup.heads.refresh();
  const before = hashes(setup.chain.blocks.slice(-3));
  setup.chain.reorg(3, 4);
  await setup.heads.refresh();
  const change = setup.changes.findLast(({ from }) => from.length > 0);
  assert.deepEqual(hashes(change?.from ?? []), before);
  assert.deepEqual(hashes(change?.to ?? []), hashes(setup.chain.blocks.slice(-4)));
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.match(await setup.telemetry.registry.metrics(), /forebay_reorgs_total\{chain="test"\} 1/);
});

test("the served chain follows a reorganisation at the same height, to a shorter chain, and of all blocks", async (t) => {
  const setup = await setUp(t, { height: 40, finality: { depth: 5 } });
  await run(setup, 10_000, 2_000, () => setup.heads.markActive());
  for (const [depth, count] of [
    [2, 2],
    [5, 2],
    [30, 3],
    [1, 1],
  ] as const) {
    setup.chain.reorg(depth, count);
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
  const setup = await setUp(t, { height: 20_000 });
  const other = createFakeChain({ seed: "other", height: 3 });
  setup.node.chain = other;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, other.latest.hash);
  assert.equal(setup.identity.genesis, other.blocks[0]?.hash);
});

test("a node that lags, restarts, or reports height 0 does not move the head back", async (t) => {
  const setup = await setUp(t, { height: 30 });
  await run(setup, 4_000, 2_000, () => setup.heads.markActive());
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
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(setup.changes.filter(({ from }) => from.length > 0).length, 1);
});

test("the highest head of several nodes is served, and a lower head on an old branch has no effect", async (t) => {
  const setup = await setUp(t, { height: 30, nodes: 2 });
  const [, second] = setup.nodes as [ChainNode, ChainNode];
  second.chain = createFakeChain({ height: 30 });
  second.chain.reorg(3, 2);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(second.head, 29n);
  second.chain.mine(2);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, second.chain.latest.hash);
});

test("missed blocks are read, and after too many of them a new ring starts", async (t) => {
  const setup = await setUp(t, { height: 30 });
  setup.chain.mine(700);
  await setup.heads.refresh();
  assert.equal(setup.changes.at(-1)?.to.length, 700);
  setup.chain.mine(3_000);
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(setup.changes.at(-1)?.from.length, 0);
  assert.equal(setup.heads.current()?.oldest, setup.chain.latest.number - 1n);
});

test("with clients, the ring fills quickly, with full headers of the newest 256 blocks", async (t) => {
  const setup = await setUp(t, { height: 2_000 });
  await run(setup, 60_000, 2_000, () => setup.heads.markActive());
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
  const setup = await setUp(t, { height: 30 });
  await run(setup, 14_000, 2_000, () => setup.heads.markActive());
  const { safe, finalized } = setup.heads.current() ?? {};
  assert.ok(safe && finalized && safe.number > finalized.number);
  assert.equal(safe.hash, setup.chain.blocks[Number(safe.number)]?.hash);
  setup.node.lag = 10;
  await run(setup, 14_000, 100_000, () => setup.heads.markActive());
  assert.deepEqual(setup.heads.current()?.finalized, finalized);
  setup.node.down = true;
  await run(setup, 14_000, 100_000, () => setup.heads.markActive());
  assert.deepEqual(setup.heads.current()?.finalized, finalized);
});

test("finality by depth follows the head, even before the ring reaches that depth", async (t) => {
  const setup = await setUp(t, { height: 500, finality: { depth: 64 } });
  await run(setup, 1_000, 100_000, () => setup.heads.markActive());
  assert.equal(setup.heads.current()?.finalized?.hash, setup.chain.blocks[500 - 64]?.hash);
  await run(setup, 20_000, 2_000, () => setup.heads.markActive());
  const heads = setup.heads.current();
  assert.equal(heads?.finalized?.number, heads && heads.latest.number - 64n);
});

test("concurrent refreshes share requests and end after 500 ms, and next waits for one change", async (t) => {
  const setup = await setUp(t, { height: 30 });
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

test("a head far ahead is dropped once its node does not have it, and the node's chain is served again", async (t) => {
  for (const nodes of [1, 2]) {
    const setup = await setUp(t, { height: 30, nodes });
    await run(setup, 4_000, 2_000, () => setup.heads.markActive());
    const ahead = createFakeChain({ height: 30 });
    ahead.mine(3_000);
    setup.node.chain = ahead;
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest.hash, ahead.latest.hash, "no node contradicts it");
    setup.node.chain = setup.chain;
    await run(setup, 6_000, 2_000, () => setup.heads.markActive());
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash, `${nodes} nodes`);
    assert.equal(setup.heads.current()?.at(7n)?.hash, setup.chain.blocks[7]?.hash);
  }
});

test("a wrong first head is dropped", async (t) => {
  for (const nodes of [1, 2]) {
    const wrong = createFakeChain({ seed: "other", height: 5_000 });
    const setup = await setUp(t, { height: 30, nodes, firstChain: wrong });
    setup.node.chain = setup.chain;
    await run(setup, 6_000, 2_000, () => setup.heads.markActive());
    await setup.heads.refresh();
    assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash, `${nodes} nodes`);
  }
});

test("a head that its node does not have is dropped if another node's head is below it", async (t) => {
  const setup = await setUp(t, { height: 30, nodes: 2 });
  await run(setup, 4_000, 2_000, () => setup.heads.markActive());
  const before = setup.chain.latest;
  const ahead = createFakeChain({ height: Number(before.number) });
  ahead.mine();
  setup.node.chain = ahead;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, ahead.latest.hash);
  setup.node.chain = setup.chain;
  await setup.heads.refresh();
  assert.equal(setup.heads.current()?.latest.hash, ahead.latest.hash, "one machine may be behind another");
  await run(setup, 20_000, 100_000, () => setup.heads.markActive());
  assert.equal(setup.heads.current()?.latest.hash, before.hash);
});

test("impossible block numbers are ignored as heads", async (t) => {
  const setup = await setUp(t, { height: 30 });
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
