import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { Call } from "../../src/jsonrpc/call.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
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

const gaugeOf = async ({ telemetry }: Pick<Awaited<ReturnType<typeof trackHeads>>, "telemetry">, name: string) => {
  const line = (await telemetry.registry.metrics()).split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1));
};

for (const blockMs of [200, 1_000]) {
  test(`an idle chain with ${blockMs} ms blocks needs at most 50 calls a minute, and reports new heads`, async (t) => {
    const setup = await trackHeads(t, { height: 5_000, secondsPerBlock: blockMs / 1_000 });
    for (let minute = 0; minute < 10; minute += 1) {
      const before = setup.node.calls;
      await mineFor(setup, 60_000, blockMs);
      // The first minute measures the block time.
      const limit = minute === 0 ? 60 : 50;
      assert.ok(setup.node.calls - before <= limit, `${setup.node.calls - before} calls in minute ${minute}`);
      const reported = await gaugeOf(setup, 'forebay_head{chain="test",tag="latest"}');
      assert.ok(Number(setup.chain.latest.number) - reported <= 4_000 / blockMs, `reported ${reported}`);
    }
    setup.heads.markActive();
    await setup.heads.catchingUp;
    assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
    assert.equal(setup.heads.current()?.finalized?.number, setup.chain.latest.number - 8n);
  });
}

test("the first client of an idle fast chain waits until the newest block is served, and no block is left out", async (t) => {
  const setup = await trackHeads(t, { height: 300, secondsPerBlock: 0.2 });
  await mineFor(setup, 40_000, 200);
  const before = setup.changes.length;
  await mineFor(setup, 120_000, 200);
  assert.ok(setup.changes.length - before <= 12, "blocks are not linked");
  setup.heads.markActive();
  const { catchingUp } = setup.heads;
  assert.ok(catchingUp, "its heads are read first");
  await catchingUp;
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(setup.heads.catchingUp, undefined);
  const served = setup.changes.flatMap(({ to }) => to.map(({ number }) => number));
  const [first = 0n] = served;
  assert.deepEqual(
    served,
    served.map((_, index) => first + BigInt(index)),
  );
  setup.heads.markActive();
  assert.equal(setup.heads.catchingUp, undefined, "the second one does not wait");
});

test("a client of an idle fast chain waits at most 2 s for a hung node", async (t) => {
  const setup = await trackHeads(t, { height: 300, secondsPerBlock: 0.2 });
  await mineFor(setup, 40_000, 200);
  setup.node.send = () => new Promise(() => undefined);
  setup.heads.markActive();
  const { catchingUp } = setup.heads;
  assert.ok(catchingUp);
  await setup.clock.advance(2_000);
  await catchingUp;
});

test("an idle chain with a feed is followed block by block", async (t) => {
  const setup = await trackHeads(t, { height: 300, secondsPerBlock: 1, hasFeed: true });
  await mineFor(setup, 40_000, 1_000);
  const behind = setup.chain.latest.number - (setup.heads.current()?.latest.number ?? 0n);
  assert.ok(behind <= 1n, `${behind} blocks behind`);
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

/** The newest blocks of a chain when it changes, and the block time before and after. */
const CHANGES: readonly [string, { readonly blockMs: number; readonly pauseSeconds: number }][] = [
  ["blocks become ten times as fast", { blockMs: 200, pauseSeconds: 0 }],
  ["blocks come again after a pause of ten minutes", { blockMs: 2_000, pauseSeconds: 600 }],
];
/** By then, polls have brought several blocks at once. */
const NOTICED_MS = 4_000;

for (const [name, { blockMs, pauseSeconds }] of CHANGES) {
  test(`if ${name}, a node's new head is soon served within 1 s again`, async (t) => {
    const height = 100;
    const { blocks: base } = createFakeChain({ height });
    const { timestamp = 0n } = base.at(-1) ?? {};
    const secondsPerBlock = blockMs / 1_000;
    const startSeconds = Number(timestamp) + pauseSeconds - Math.floor(height * secondsPerBlock);
    const setup = await trackHeads(t, { chain: createFakeChain({ base, height, secondsPerBlock, startSeconds }) });
    const { chain, clock, heads } = setup;
    const startMs = clock.nowMs();
    const minedMs = new Map<bigint, number>();
    await mineFor(setup, 20_000, blockMs, () => {
      heads.markActive();
      const nowMs = clock.nowMs();
      minedMs.set(chain.latest.number, minedMs.get(chain.latest.number) ?? nowMs);
      const behindMs = nowMs - (minedMs.get((heads.current()?.latest.number ?? 0n) + 1n) ?? nowMs);
      assert.ok(behindMs <= 1_000 || nowMs < startMs + NOTICED_MS, `${behindMs} ms behind after ${nowMs - startMs} ms`);
    });
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
  assert.equal(setup.heads.current()?.oldest, setup.chain.latest.number);
});

const setDepth = (node: ChainNode | undefined, finalizedDepth: number): void => {
  Object.assign(node ?? {}, { finalizedDepth });
};

test("the ring has 64 blocks after the start, and fills down to a block that is read, if that is not final", async (t) => {
  const setup = await trackHeads(t, { height: 2_000, alter: ([node]) => setDepth(node, 600) });
  await mineFor(setup, 60_000, 60_000, () => setup.heads.markActive());
  const before = setup.heads.current();
  assert.ok(before && before.latest.number - before.oldest <= 65n);
  assert.equal(before.at(1_300n), undefined);
  await mineFor(setup, 60_000, 60_000, () => setup.heads.markActive());
  assert.ok((setup.heads.current()?.oldest ?? 0n) > 1_900n, "a final block");
  assert.equal(setup.heads.current()?.at(1_500n), undefined);
  await mineFor(setup, 60_000, 60_000, () => setup.heads.markActive());
  const after = setup.heads.current();
  assert.equal(after?.at(1_500n)?.hash, setup.chain.blocks[1_500]?.hash);
  assert.equal(after?.oldest, 1_500n);
});

const NEWEST = { from: 0n, to: 10_000n };

test("requests that need the newest headers wait for them, and for no others", async (t) => {
  const setup = await trackHeads(t, { height: 2_000 });
  assert.equal(setup.heads.reach({ from: 0n, to: 1_700n }), undefined, "an older range");
  assert.equal(setup.heads.reach({ from: 2_000n, to: 2_000n }), undefined, "a known block");
  const heads = await setup.heads.reach(NEWEST);
  assert.ok((heads?.oldest ?? 2_000n) <= 1_745n);
  assert.equal(setup.heads.reach(NEWEST), undefined);
});

test("requests do not wait for headers that no node has", async (t) => {
  const setup = await trackHeads(t, { height: 2_000 });
  setup.node.onCall = ({ params: [tag] }) => (tag === "latest" ? undefined : fail());
  const heads = await setup.heads.reach(NEWEST);
  assert.ok((heads?.oldest ?? 0n) > 1_990n);
});

test("a request that waits for blocks that the ring cannot have any more ends, and holds no event loop", async (t) => {
  const setup = await trackHeads(t, {
    ...{ nodes: 2, agree: 1, height: 20_000 },
    alter: (nodes) => {
      for (const node of nodes) {
        Object.assign(node, { lag: 10_000, finalizedDepth: 5_000 });
      }
    },
  });
  await mineFor(setup, 10_000, 600_000, () => setup.heads.markActive());
  const held = Promise.withResolvers<void>();
  let batches = 0;
  for (const node of setup.nodes) {
    const { batch } = node;
    node.batch = async (...args) => {
      const isFirst = ++batches === 1;
      const answers = await batch(...args);
      await (isFirst ? held.promise : undefined);
      return answers;
    };
  }
  const reached = setup.heads.reach({ from: 0n, to: setup.heads.current()?.latest.number ?? 0n });
  // The nodes catch up meanwhile.
  for (const node of setup.nodes) {
    Object.assign(node, { lag: 0 });
  }
  await mineFor(setup, 3_000, 600_000, () => setup.heads.markActive());
  held.resolve();
  await reached;
  await new Promise(setImmediate);
});

test("blocks that an earlier process served are not read again", async (t) => {
  const before = await trackHeads(t, { height: 2_000 });
  await before.heads.reach(NEWEST);
  const { sealed } = before.heads;
  assert.equal(sealed.length, 256);
  const oldest = sealed[0]?.block.number;
  before.chain.mine(3);
  const after = await trackHeads(t, { chain: before.chain, known: sealed });
  await mineFor(after, 1_000, 60_000, () => after.heads.markActive());
  assert.ok((after.heads.current()?.oldest ?? 2_000n) <= (oldest ?? 0n));
  assert.equal(after.heads.current()?.header(1_900n)?.stateRoot, before.chain.blocks[1_900]?.json.stateRoot);
  // Three blocks are new.
  assert.ok(after.node.calls < 10, `${after.node.calls} calls`);
});

test("blocks of another branch than the head's are not taken over", async (t) => {
  const before = await trackHeads(t, { height: 2_000 });
  await mineFor(before, 10_000, 60_000, () => before.heads.markActive());
  const { sealed } = before.heads;
  before.chain.reorg(10, 12);
  const after = await trackHeads(t, { chain: before.chain, known: sealed });
  await mineFor(after, 10_000, 60_000, () => after.heads.markActive());
  const heads = after.heads.current();
  for (const { block } of sealed) {
    assert.equal(heads?.at(block.number)?.hash, before.chain.blocks[Number(block.number)]?.hash);
  }
});

test("with clients, the ring fills quickly, with full headers of the newest 256 blocks", async (t) => {
  const setup = await trackHeads(t, { height: 2_000, alter: ([node]) => setDepth(node, 5_000) });
  setup.heads.current()?.at(1n);
  await mineFor(setup, 60_000, 2_000, () => setup.heads.markActive());
  const heads = setup.heads.current();
  assert.ok(heads);
  assert.equal(heads.oldest, 1n);
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

test("many reads of older blocks cause no more reads of headers than the budget of a node has for them", async (t) => {
  const { heads, node, clock } = await trackHeads(t, {
    height: 500,
    alter: ([node]) => Object.assign(node?.config ?? {}, { requestsPerSecond: 8 }),
  });
  heads.markActive();
  await clock.advance(5_000);
  const before = node.calls;
  for (let read = 0; read < 10; read++) {
    await heads.reach({ from: 300n, to: 300n });
  }
  assert.ok(node.calls - before <= 2, `${node.calls - before} calls`);
});

test("headers that a node does not return in time are waited for once, and the next reads do not wait", async (t) => {
  const { heads, node, clock } = await trackHeads(t, { height: 500 });
  await clock.advance(5_000);
  heads.markActive();
  const hanging = Promise.withResolvers<void>();
  const { batch } = node;
  node.batch = (calls, scope) => hanging.promise.then(() => batch(calls, scope));
  const range = { from: 300n, to: 300n };
  const first = heads.reach(range);
  assert.ok(first);
  await clock.advance(2_000);
  await first;
  assert.equal(heads.reach(range), undefined);
  hanging.resolve();
  await clock.advance(5_000);
  assert.equal(heads.current()?.at(300n)?.number, 300n);
  const older = heads.reach({ from: 260n, to: 260n });
  assert.ok(older, "the node responds again");
  await clock.advance(2_000);
  assert.equal((await older).at(260n)?.number, 260n);
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

const fail = (): never => {
  throw new NodeError("other", "node1", "zorp");
};

/** Kinds of a node that does not answer calls of our own, with the most calls of ten minutes. */
const FAILING: Readonly<Record<string, { readonly onCall: (call: Call) => void; readonly most: number }>> = {
  // Polls every 5 s, and the rest ever more seldom.
  "each call": { onCall: fail, most: 250 },
  // The newest block is polled as always.
  "all but the newest block": { onCall: ({ params: [tag] }) => (tag === "latest" ? undefined : fail()), most: 1_500 },
};

for (const [name, { onCall, most }] of Object.entries(FAILING)) {
  for (const blocksPerPeriod of [0, 1, 10]) {
    test(`a node that has an error for ${name} gets few calls, with ${blocksPerPeriod} new blocks every 2 s`, async (t) => {
      const setup = await trackHeads(t, { height: 2_000 });
      const { node, heads, chain, clock } = setup;
      node.onCall = onCall;
      node.calls = 0;
      for (let elapsedMs = 0; elapsedMs < 600_000; elapsedMs += 2_000) {
        heads.markActive();
        await clock.advance(2_000);
        chain.mine(blocksPerPeriod);
      }
      assert.ok(node.calls <= most, `${node.calls} calls`);
      node.onCall = () => undefined;
      await mineFor(setup, 120_000, 120_000, () => heads.markActive(), 1_000);
      assert.ok((heads.current()?.latest.number ?? 0n) >= chain.latest.number - 1n);
      assert.ok((heads.current()?.oldest ?? 0n) <= chain.latest.number - 63n);
    });
  }
}

test("a node that lacks old blocks is asked for them ever more seldom", async (t) => {
  let asked = 0;
  const { heads, clock } = await trackHeads(t, {
    height: 2_000,
    alter: ([node]) => {
      const send = node?.send;
      if (node === undefined || send === undefined) {
        return;
      }
      node.send = async (call, scope) => {
        const isOld = Number(call.params[0]) < 1_990;
        asked += isOld ? 1 : 0;
        return isOld ? new TextEncoder().encode("null") : send(call, scope);
      };
    },
  });
  for (let elapsedMs = 0; elapsedMs < 600_000; elapsedMs += 1_000) {
    heads.markActive();
    await clock.advance(1_000);
  }
  assert.ok(asked > 0 && asked < 200, `${asked} blocks`);
});
