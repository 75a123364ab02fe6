import assert from "node:assert/strict";
import { test } from "node:test";
import type { FakeBlock, FakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { BranchedChain } from "../world/chain/branchedChain.ts";
import { forge } from "./forge.ts";
import {
  BLOCK_MS,
  isHonest,
  metricOf,
  mineFor,
  pause,
  run,
  STEP_MS,
  served,
  startAlone,
  type Tracking,
  trackHeads,
} from "./trackHeads.ts";

/** Returns the chain of a node that has other newest blocks, also under hashes that it copied. */
const withTop = (chain: FakeChain, top: readonly FakeBlock[]): FakeChain => {
  const blocks = [...chain.blocks.slice(0, -top.length), ...top];
  const none = () => undefined;
  const byHash = (hash: unknown) => blocks.findLast((block) => block.hash === hash);
  const latest = top.at(-1) ?? chain.latest;
  return {
    chainId: chain.chainId,
    blocks,
    latest,
    byHash,
    mine: none,
    reorg: none,
    rewind: none,
    onBlocks: () => none,
  };
};

/** Returns a block with other fields, under the same hash. */
const change = (block: FakeBlock, fields: Readonly<Record<string, string>>): FakeBlock => ({
  ...block,
  json: { ...block.json, ...fields },
});

const FORGERIES: Readonly<Record<string, (chain: FakeChain) => FakeChain>> = {
  "other fields": (chain) =>
    withTop(chain, [change(chain.latest, { timestamp: "0x1", stateRoot: `0x${"1".repeat(64)}` })]),
  "another parent": (chain) => {
    const [before, parent, latest] = chain.blocks.slice(-3) as [FakeBlock, FakeBlock, FakeBlock];
    const forged = `0x${latest.hash.slice(2).split("").reverse().join("")}` as const;
    return withTop(chain, [
      change({ ...parent, hash: forged }, { hash: forged, parentHash: before.hash }),
      change(latest, { parentHash: forged }),
    ]);
  },
};

const assertHonest = (setup: Tracking, elapsedMs: number): void =>
  assert.ok(isHonest(setup, served(setup)?.hash), `after ${elapsedMs} ms`);

/** Holds the answers of a node until the returned promise is resolved. */
const holdAnswers = (node: ChainNode): PromiseWithResolvers<void> => {
  const { send } = node;
  const held = Promise.withResolvers<void>();
  node.send = async (...args) => {
    await held.promise;
    return send(...args);
  };
  return held;
};

test("a chain that one of three origins invents far ahead is never served, and its node is excluded from heads", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  const [, liar] = setup.nodes as [ChainNode, ChainNode];
  liar.chain = forge(setup.chain, 40);
  await run(setup, 10, () => assert.ok(isHonest(setup, served(setup)?.hash)));
  assert.equal(setup.heads.isExcluded("node2"), true);
  assert.deepEqual(
    (await metricOf(setup, "forebay_upstream_heads_excluded")).filter((line) => line.endsWith(" 1")),
    ['forebay_upstream_heads_excluded{chain="test",node="node2"} 1'],
  );
  liar.chain = setup.chain;
  await run(setup, 160);
  assert.equal(setup.heads.isExcluded("node2"), false);
});

test("an invented child is not served because one honest origin is late after a pause", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  const [liar, , late] = setup.nodes as [ChainNode, ChainNode, ChainNode];
  await run(setup, 4);
  liar.chain = forge(setup.chain, 1);
  const each = (elapsedMs: number) => assertHonest(setup, elapsedMs);
  await pause(setup, 4_900, each);
  late.lag = 1;
  setup.chain.mine();
  await pause(setup, 300, each);
  late.lag = 0;
  await pause(setup, 2_000, each);
});

for (const [name, forgeTop] of Object.entries(FORGERIES)) {
  test(`a block under the hash of an honest one, with ${name}, is not served`, async (t) => {
    const chain = new BranchedChain(30);
    const setup = await trackHeads(t, {
      ...{ chain, nodes: 3 },
      alter: ([first], honest) => Object.assign(first ?? {}, { chain: forgeTop(honest) }),
    });
    const [liar, , late] = setup.nodes as [ChainNode, ChainNode, ChainNode];
    await run(setup, 6, (elapsedMs) => {
      liar.chain = forgeTop(chain);
      late.lag = elapsedMs % BLOCK_MS < BLOCK_MS / 2 ? 1 : 0;
      const heads = setup.heads.current();
      assert.ok(heads);
      for (let { oldest: number } = heads; number <= heads.latest.number; number++) {
        assert.equal(heads.at(number)?.hash, chain.blocks[Number(number)]?.hash);
        assert.equal(heads.header(number)?.timestamp, chain.blocks[Number(number)]?.json.timestamp);
      }
    });
    assert.ok((served(setup)?.number ?? 0n) >= chain.latest.number - 1n);
  });
}

test("blocks below the head are those of the hashes, also if the node that is read for them has others", async (t) => {
  const chain = new BranchedChain(60);
  const top = chain.blocks.slice(20);
  const forged = withTop(
    chain,
    top.map((block, index) => (index === 0 ? change(block, { parentHash: `0x${"1".repeat(64)}` }) : block)),
  );
  const setup = await trackHeads(t, {
    ...{ chain, nodes: 3 },
    alter: ([first]) => Object.assign(first ?? {}, { chain: forged }),
  });
  await run(setup, 2);
  const heads = setup.heads.current();
  assert.equal(heads?.oldest, 0n);
  assert.equal(heads?.at(20n)?.parentHash, chain.blocks[19]?.hash);
});

/** What ends the idle time of a chain. */
const WAKES: Readonly<Record<string, (setup: Tracking) => void>> = {
  "its first client": ({ heads }) => heads.markActive(),
  "a refresh": ({ heads }) => void heads.refresh(),
};

for (const [name, wake] of Object.entries(WAKES)) {
  test(`after an idle time on a fast chain, ${name} gives the other one of two origins 2 s to answer`, async (t) => {
    const setup = await trackHeads(t, { height: 300, nodes: 2, secondsPerBlock: 0.2 });
    const [liar, honest] = setup.nodes as [ChainNode, ChainNode];
    await mineFor(setup, 40_000, 200);
    liar.chain = forge(setup.chain, 5);
    const held = holdAnswers(honest);
    wake(setup);
    await setup.clock.advance(1_500);
    assert.ok(isHonest(setup, served(setup)?.hash), "the first answer is not served alone");
    held.resolve();
    setup.heads.markActive();
    await setup.clock.advance(500);
    assert.equal(served(setup)?.hash, setup.chain.latest.hash);
  });
}

for (const idleMs of [40_000, 600_000]) {
  test(`after ${idleMs / 1_000} s without clients on a fast chain, no origin loses its vote before it has answered`, async (t) => {
    const setup = await trackHeads(t, { height: 300, nodes: 3, secondsPerBlock: 0.2 });
    const [liar, ...honest] = setup.nodes as [ChainNode, ChainNode, ChainNode];
    await mineFor(setup, idleMs, 200);
    const before = served(setup)?.number ?? 0n;
    assert.ok(setup.chain.latest.number - before > 100n, "the chain is idle");
    liar.chain = forge(setup.chain, 5);
    const answers = honest.map(holdAnswers);
    setup.heads.markActive();
    await setup.clock.advance(1_000);
    assert.ok(isHonest(setup, served(setup)?.hash), "the first answer is not served alone");
    for (const { resolve } of answers) {
      resolve();
    }
    await setup.clock.advance(500);
    assert.ok(isHonest(setup, served(setup)?.hash));
    assert.ok((served(setup)?.number ?? 0n) >= setup.chain.latest.number, "the majority is served");
  });
}

for (const ahead of [20, 150, 400, 2_000]) {
  test(`a chain ${ahead} ahead that was invented before the others could be reached ends with them`, async (t) => {
    const setup = await startAlone(t, 30, ([first], chain) => {
      first.chain = forge(chain, ahead);
    });
    assert.equal(setup.alone.number, BigInt(30 + ahead));
    for (const node of setup.nodes.slice(1)) {
      node.refuses = false;
      await run(setup, 8);
    }
    assert.ok(isHonest(setup, served(setup)?.hash));
    assert.ok((served(setup)?.number ?? 0n) >= setup.chain.latest.number - 1n);
    assert.equal(setup.heads.current()?.isAgreed, true);
  });
}

for (const isDown of [true, false]) {
  test(`the preferred of two origins that is far ahead and then ${isDown ? "dies" : "stops"} decides no longer`, async (t) => {
    const setup = await trackHeads(t, { height: 30, nodes: 2 });
    const [liar] = setup.nodes as [ChainNode];
    await run(setup, 2);
    liar.chain = forge(setup.chain, 200);
    await run(setup, 2);
    assert.ok(!isHonest(setup, served(setup)?.hash));
    liar.down = isDown;
    liar.available = !isDown;
    await run(setup, isDown ? 2 : 5);
    assert.equal(served(setup)?.hash, setup.chain.byHash(served(setup)?.hash)?.hash);
    assert.ok((served(setup)?.number ?? 0n) >= setup.chain.latest.number - 1n);
  });
}

test("an invented chain of more than 2,048 blocks above the head is not read", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  const [liar] = setup.nodes as [ChainNode];
  const invented = forge(setup.chain, 2_060);
  liar.chain = invented;
  await run(setup, 1);
  liar.calls = 0;
  let announcements = 0;
  for (let turn = 0; turn < 40; turn++) {
    invented.mine(2);
    await setup.heads.refresh();
    announcements++;
  }
  assert.ok(liar.calls <= announcements + 4, `${liar.calls} calls for ${announcements} heads`);
  assert.ok(isHonest(setup, served(setup)?.hash));
});

test("an invented child is not served while one honest origin is excluded and the other one is silent", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  const [excluded, liar] = setup.nodes as [ChainNode, ChainNode];
  excluded.chain = forge(setup.chain, 3);
  await run(setup, 6);
  assert.equal(setup.heads.isExcluded("node1"), true);
  await setup.clock.advance(1_000);
  liar.chain = forge(setup.chain, 1);
  await pause(setup, 14_000, (elapsedMs) => assertHonest(setup, elapsedMs));
});

for (const isReachable of [true, false]) {
  test(`an invented chain on a replaced branch is not served, with its node ${isReachable ? "in use" : "out of use"}`, async (t) => {
    const setup = await trackHeads(t, { height: 60, nodes: 3 });
    const [, , liar] = setup.nodes as [ChainNode, ChainNode, ChainNode];
    await run(setup, 2);
    liar.chain = forge(setup.chain, 5);
    await setup.heads.refresh();
    liar.available = isReachable;
    await setup.clock.advance(STEP_MS);
    setup.chain.reorg(20, 21);
    await setup.heads.refresh();
    assert.equal(served(setup)?.hash, setup.chain.latest.hash);
    // The chain pauses.
    await pause(setup, 30_000, (pausedMs) => assertHonest(setup, pausedMs));
  });
}

for (const pauseMs of [6_000, 10_000, 14_500]) {
  test(`a block that the preferred origin invents in a pause of ${pauseMs / 1_000} s is not served when the chain goes on`, async (t) => {
    const setup = await trackHeads(t, { height: 30, nodes: 3 });
    const [liar] = setup.nodes as [ChainNode];
    await run(setup, 3);
    await setup.clock.advance(1_000);
    const each = (elapsedMs: number) => assertHonest(setup, elapsedMs);
    liar.chain = forge(setup.chain, 1);
    await pause(setup, pauseMs, each);
    setup.chain.mine();
    await pause(setup, 2_000, each);
    assert.equal(served(setup)?.hash, setup.chain.latest.hash);
  });
}
