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

test("a single node with errors above its head: a reorganisation to a shorter chain", async (t) => {
  const setup = await trackHeads(t, { height: 100 });
  errorsAboveHead(setup.node);
  await run(setup, 3);
  setup.chain.reorg(5, 3);
  await mineFor(setup, 6_000, 100_000, () => setup.heads.markActive());
  assert.equal(served(setup)?.hash, setup.chain.latest.hash);
});

test("a single node with errors above its head: a devnet is reset", async (t) => {
  const setup = await trackHeads(t, { height: 100 });
  errorsAboveHead(setup.node);
  await run(setup, 3);
  const other = createFakeChain({ seed: "other", height: 5 });
  setup.node.chain = other;
  await mineFor(setup, 20_000, 100_000, () => setup.heads.markActive());
  assert.equal(served(setup)?.hash, other.latest.hash);
});

test("a single node restarts soon after the start and reports height 0 for 10 s: the head does not move back", async (t) => {
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
