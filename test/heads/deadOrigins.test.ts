import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import { mineFor, run, served, type Tracking, trackHeads } from "./trackHeads.ts";

const isServed = async (setup: Tracking) => {
  await setup.heads.refresh();
  const { latest } = setup.chain;
  assert.equal(served(setup)?.hash, latest.hash, `${served(setup)?.number} of ${latest.number}`);
};

/** All nodes are down for this number of blocks. */
const outage = async (setup: Tracking, blocks: number) => {
  for (const node of setup.nodes) {
    node.refuses = true;
  }
  setup.chain.mine(blocks);
  await mineFor(setup, 20_000, 2_000, () => setup.heads.markActive());
};

for (const [back, nodes, blocks] of [
  [1, 2, 30],
  [2, 3, 30],
  [1, 3, 60],
] as const) {
  test(`of ${nodes} origins, ${back} is back after an outage of 2,049 blocks: the newest head is served`, async (t) => {
    const setup = await trackHeads(t, { height: 100, nodes });
    await run(setup, 3);
    await outage(setup, 2_049);
    for (const node of setup.nodes.slice(0, back)) {
      node.refuses = false;
    }
    await run(setup, blocks);
    await isServed(setup);
  });
}

test("two origins: a devnet is reset, and one of the nodes does not come back", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 2 });
  await run(setup, 3);
  for (const node of setup.nodes) {
    node.refuses = true;
  }
  await mineFor(setup, 10_000, 100_000, () => setup.heads.markActive());
  const other = createFakeChain({ seed: "other", height: 5 });
  for (const node of setup.nodes) {
    node.chain = other;
  }
  setup.node.refuses = false;
  for (let i = 0; i < 600; i++) {
    setup.heads.markActive();
    await setup.clock.advance(100);
    if (i % 20 === 0) {
      other.mine();
    }
  }
  await setup.heads.refresh();
  assert.equal(served(setup)?.hash, other.latest.hash, `${served(setup)?.number} of ${other.latest.number}`);
});

for (const [name, options] of [
  ["one of two origins, with `agree: 1`", { nodes: 2, agree: 1 }],
  ["one of two nodes of one origin", { nodes: 2, origins: ["a", "a"] }],
] as const) {
  test(`${name} that invented 50 blocks dies: the other's head is served within 20 s`, async (t) => {
    const setup = await trackHeads(t, { height: 100, ...options });
    await run(setup, 3);
    const [first] = setup.nodes as [ChainNode, ChainNode];
    first.chain = forge(setup.chain, 50);
    await run(setup, 1);
    first.refuses = true;
    await run(setup, 10);
    await isServed(setup);
  });

  test(`${name} that was 50 blocks ahead is on the other's chain again: that is served within 20 s`, async (t) => {
    const setup = await trackHeads(t, { height: 100, ...options });
    await run(setup, 3);
    const [first] = setup.nodes as [ChainNode, ChainNode];
    first.chain = forge(setup.chain, 50);
    await run(setup, 1);
    first.chain = setup.chain;
    await run(setup, 10);
    await isServed(setup);
  });
}
