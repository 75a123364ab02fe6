import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { mineFor, run, served, trackHeads } from "./trackHeads.ts";

/** The node answers blocks above its head with an error. */
const errorsAboveHead = (node: ChainNode) => {
  node.onCall = ({ method, params: [tag] }) => {
    if (method === "eth_getBlockByNumber" && String(tag).startsWith("0x") && Number(tag) >= node.chain.blocks.length) {
      throw new NodeError("missingData", node.name, "block not found");
    }
  };
};

test("a sole node with errors above its head: a reorganisation to a shorter chain", async (t) => {
  const setup = await trackHeads(t, { height: 100 });
  errorsAboveHead(setup.node);
  await run(setup, 3);
  setup.chain.reorg(5, 3);
  await mineFor(setup, 6_000, 100_000, () => setup.heads.markActive());
  assert.equal(served(setup)?.hash, setup.chain.latest.hash);
});

test("a sole node with errors above its head: a devnet is reset", async (t) => {
  const setup = await trackHeads(t, { height: 100 });
  errorsAboveHead(setup.node);
  await run(setup, 3);
  const other = createFakeChain({ seed: "other", height: 5 });
  setup.node.chain = other;
  await mineFor(setup, 20_000, 100_000, () => setup.heads.markActive());
  assert.equal(served(setup)?.hash, other.latest.hash);
});

test("a sole URL with one machine stuck on a replaced branch: the head does not go back to it", async (t) => {
  const setup = await trackHeads(t, { height: 100 });
  await run(setup, 3);
  const stuck = createFakeChain({ height: setup.chain.blocks.length - 1, base: setup.chain.blocks });
  setup.chain.reorg(2, 2);
  await run(setup, 3);
  const good = setup.chain;
  const { node } = setup;
  // Connections end now and then: the next one reaches either machine.
  let isStuck = false;
  let wrong = 0;
  await run(setup, 30, (elapsedMs) => {
    if (elapsedMs % 1_300 === 0) {
      isStuck = !isStuck;
    }
    node.chain = isStuck ? stuck : good;
    if (served(setup)?.hash === stuck.latest.hash) {
      wrong += 1;
    }
  });
  const reorgs = setup.changes.filter(({ from }) => from.length > 0).length;
  assert.equal(`${wrong} steps of 600, ${reorgs} reorgs`, "0 steps of 600, 1 reorgs");
});

test("an idle sole node below the ring costs at most 50 calls a minute", async (t) => {
  const setup = await trackHeads(t, { height: 1_000 });
  await run(setup, 60);
  const { latest } = await setup.heads.refresh();
  setup.node.height = 100;
  await mineFor(setup, 60_000, 2_000);
  const before = setup.node.calls;
  await mineFor(setup, 120_000, 2_000);
  const perMinute = (setup.node.calls - before) / 2;
  assert.equal(served(setup)?.hash, latest.hash);
  assert.ok(perMinute <= 50, `${perMinute} calls a minute`);
});

test("a sole node restarts soon after the start and reports height 0 for 10 s: the head does not move back", async (t) => {
  const setup = await trackHeads(t, { height: 1_000 });
  await run(setup, 5);
  const { finalized } = await setup.heads.refresh();
  assert.ok(finalized);
  setup.node.height = 0;
  let lowest = served(setup)?.number ?? 0n;
  await run(setup, 5, () => {
    const number = served(setup)?.number ?? 0n;
    lowest = number < lowest ? number : lowest;
  });
  assert.ok(lowest >= 1_000n, `the head went to ${lowest}, finalized to ${setup.heads.current()?.finalized?.number}`);
});
