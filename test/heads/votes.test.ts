import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import { BLOCK_MS, isHonest, metricOf, run, STEP_MS, served, type Tracking, trackHeads } from "./trackHeads.ts";

/** The node answers each request after this time. */
const slow = (node: ChainNode, { clock }: Pick<Tracking, "clock">, forMs: number): void => {
  const { send } = node;
  node.send = async (call, scope) => {
    await clock.sleep(forMs, new AbortController().signal);
    return send(call, scope);
  };
};

/** Runs with a first origin that invents a child of each block. None of them may be served. Returns how far the head is behind. */
const runWithLiar = async (setup: Tracking, blocks: number): Promise<bigint> => {
  const [liar] = setup.nodes as [ChainNode];
  await run(setup, blocks, () => {
    liar.chain = forge(setup.chain, 1);
    assert.ok(isHonest(setup, served(setup)?.hash), `${served(setup)?.number} is invented`);
  });
  return setup.chain.latest.number - (served(setup)?.number ?? 0n);
};

for (const nodes of [3, 4]) {
  test(`of ${nodes} origins, those whose nodes are out of use have their votes, because their heads arrive`, async (t) => {
    const setup = await trackHeads(t, { height: 30, nodes });
    await run(setup, 2);
    for (const honest of setup.nodes.slice(1)) {
      honest.available = false;
    }
    assert.ok((await runWithLiar(setup, 20)) <= 1n);
    assert.equal(setup.heads.current()?.isAgreed, true);
    assert.ok((await metricOf(setup, "forebay_heads_contradicted")).every((line) => line.endsWith(" 0")));
  });

  test(`of ${nodes} origins, those whose heads arrive 2 and 6 s late have their votes`, async (t) => {
    const setup = await trackHeads(t, { height: 60, nodes });
    await run(setup, 2);
    for (const [index, honest] of setup.nodes.slice(1).entries()) {
      slow(honest, setup, index === 0 ? 2_000 : 6_000);
    }
    // Once two of four have no vote, the head waits for the slower one of the others.
    assert.ok((await runWithLiar(setup, 40)) <= 8n);
  });
}

test("at the start, the head of one of three origins is not served while two that are slow may answer", async (t) => {
  const honest = createFakeChain({ height: 30 });
  const setup = await trackHeads(t, {
    ...{ chain: honest, nodes: 3, firstChain: forge(honest, 5) },
    alter: (nodes) => {
      for (const node of nodes.slice(1)) {
        node.down = true;
      }
    },
  });
  for (let elapsedMs = 0; elapsedMs < 10_000; elapsedMs += STEP_MS) {
    await setup.clock.advance(STEP_MS);
    assert.equal(served(setup), undefined);
  }
  for (const node of setup.nodes.slice(1)) {
    node.down = false;
  }
  await setup.clock.advance(4_000);
  assert.ok(isHonest(setup, served(setup)?.hash));
  assert.equal(setup.heads.current()?.isAgreed, true);
});

test("at the start, one of three origins decides alone after 15 s", async (t) => {
  const setup = await trackHeads(t, {
    ...{ height: 30, nodes: 3 },
    alter: (nodes) => {
      for (const node of nodes.slice(1)) {
        node.down = true;
      }
    },
  });
  await setup.clock.advance(14_900);
  assert.equal(served(setup), undefined);
  await setup.clock.advance(1_200);
  assert.equal(served(setup)?.hash, setup.chain.latest.hash);
  assert.equal(setup.heads.current()?.isAgreed, false);
});

test("two of four origins that are configured first do not replace the served head of the two others", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 4 });
  await run(setup, 4);
  const branch = createFakeChain({ height: setup.chain.blocks.length - 1 });
  branch.reorg(2, 3);
  for (const liar of setup.nodes.slice(0, 2)) {
    liar.chain = branch;
  }
  const before = served(setup)?.number ?? 0n;
  await run(setup, 10, (elapsedMs) => {
    if (elapsedMs % BLOCK_MS === 0) {
      branch.mine();
    }
    assert.ok(isHonest(setup, served(setup)?.hash), `${served(setup)?.number} is of the branch`);
  });
  assert.ok((served(setup)?.number ?? 0n) >= before + 9n, "the head goes on");
  assert.deepEqual(await metricOf(setup, "forebay_heads_contradicted"), ['forebay_heads_contradicted{chain="test"} 1']);
});

test("an origin that is of another chain has no vote: of three, two are left", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  const [, silent, other] = setup.nodes as [ChainNode, ChainNode, ChainNode];
  await run(setup, 2);
  other.identity.isIdentified = false;
  silent.height = Number(setup.chain.latest.number);
  const before = served(setup)?.number ?? 0n;
  await run(setup, 4);
  assert.ok((served(setup)?.number ?? 0n) > before, "the other one decides after two block times");
});

test("a node whose heads are ignored stays so while the nodes of the others are out of use", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  const [liar, ...honest] = setup.nodes as [ChainNode, ChainNode, ChainNode];
  liar.chain = forge(setup.chain, 40);
  await run(setup, 8);
  assert.equal(setup.heads.isExcluded("node1"), true);
  for (const node of honest) {
    node.available = false;
  }
  await run(setup, 4);
  assert.equal(setup.heads.isExcluded("node1"), true);
});
