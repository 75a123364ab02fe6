import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { flashblock, hashOf, payloadOf, raw } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";
import { assertNotOlder, block, createBegunRig, type Rig, sealBlock, sealed } from "./sealBlock.ts";

/** Asserts that the feed is served live with the next block. */
const assertLive = async (rig: Rig, number: bigint): Promise<void> => {
  await rig.send(...block(number));
  assert.equal(rig.shown(), `${number}-1`);
  assert.equal(rig.view().mode, "live");
  assertNotOlder(rig);
};

test("a gap makes the prefix degraded, and the block after the next sealed block is live", async (t) => {
  const rig = createRig(t);
  await rig.send(...block(101n, 2), flashblock(3));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "degraded"]);
  await rig.send(...block(102n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "degraded"]);
  await sealBlock(rig, 101n);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "live"]);
});

test("a feed that falls silent on an open socket is stale after three block times, and live with its next block", async (t) => {
  const rig = createRig(t);
  await rig.send(...block(101n));
  await rig.pass(5_000);
  assert.equal(rig.view().mode, "live");
  await rig.pass(1_500);
  assert.equal(rig.shown(), "stale latest");
  rig.answers.set("eth_getBlockByNumber pending", { number: "0x66" });
  await sealBlock(rig, 101n);
  assert.equal(rig.shown(), "stale node");
  assert.equal(rig.view().stateFrom, "node");
  await assertLive(rig, 102n);
});

test("a silent feed is stale once the head passes its last block, and live with its next block", async (t) => {
  const rig = createRig(t);
  await rig.send(...block(101n));
  await rig.pass(800);
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "live"]);
  await sealBlock(rig, 101n);
  assert.equal(rig.shown(), "live latest", "the next block begins in a moment");
  await rig.pass(500);
  assert.equal(rig.shown(), "live latest");
  await rig.pass(250);
  assert.equal(rig.shown(), "stale latest");
  rig.answers.set("eth_getBlockByNumber pending", { number: "0x67" });
  await sealBlock(rig, 102n);
  assert.equal(rig.shown(), "stale node");
  await assertLive(rig, 103n);
});

test("a lost index 0 makes its block degraded, counts once, and the next block is live", async (t) => {
  const rig = createRig(t);
  await rig.send(...block(101n));
  await rig.send(...block(102n, 4).slice(1));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "degraded"]);
  await sealBlock(rig, 101n);
  assert.equal(rig.shown(), "degraded latest");
  await rig.pass(1_500);
  assert.equal(rig.shown(), "degraded latest");
  await rig.send(...block(103n));
  assert.equal(rig.shown(), "degraded latest");
  await sealBlock(rig, 102n);
  assert.deepEqual([rig.shown(), rig.view().mode], ["103-1", "live"]);
  assert.deepEqual(await rig.counted("feedGaps"), { feedGaps: 1 });
});

/** Two blocks in a row are sealed with three messages each. */
const sealUsual = async (rig: Rig): Promise<void> => {
  for (const number of [101n, 102n]) {
    const messages = block(number, 3);
    await rig.send(...messages);
    rig.heads.move(sealed(messages, number));
    await turn();
  }
};

test("a block with fewer messages than the two blocks before is not followed until its last message or its head arrives", async (t) => {
  const rig = createRig(t);
  await sealUsual(rig);
  const [zero, one, two] = block(103n, 3);
  assert.ok(zero && one && two);
  await rig.send(zero, one, ...block(104n, 1));
  assert.deepEqual([rig.shown(), rig.view().mode], ["103-1", "degraded"]);
  await rig.send(two);
  assert.deepEqual([rig.shown(), rig.view().mode], ["104-0", "live"]);
});

test("after a lost last message the next block is not shown, and the gap is counted", async (t) => {
  const rig = createRig(t);
  await sealUsual(rig);
  await rig.send(...block(103n, 2), ...block(104n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["103-1", "degraded"]);
  assert.deepEqual(await rig.counted("feedGaps"), {});
  await sealBlock(rig, 103n);
  assert.deepEqual([rig.shown(), rig.view().mode], ["104-1", "live"]);
  assert.deepEqual(await rig.counted("feedGaps"), { feedGaps: 1 });
});

test("a block with fewer messages that lacks none is degraded until the next head, and counts no gap", async (t) => {
  const rig = createRig(t);
  await sealUsual(rig);
  const short = block(103n, 2);
  await rig.send(...short, ...block(104n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["103-1", "degraded"]);
  rig.heads.move(sealed(short, 103n));
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["104-1", "live"]);
  assert.deepEqual(await rig.counted("feedGaps"), {});
});

test("a node behind by more than the depth is degraded when messages are discarded, then stale", async (t) => {
  const rig = await createBegunRig(t);
  for (let number = 101n; number <= 105n; number++) {
    await rig.send(...block(number));
  }
  assert.deepEqual([rig.shown(), rig.view().mode], ["105-1", "live"]);
  await rig.send(...block(106n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["105-1", "degraded"]);
  await sealBlock(rig, 105n);
  assert.equal(rig.shown(), "degraded latest");
  await rig.pass(7_000);
  assert.equal(rig.shown(), "stale latest");
});

test("while a live feed is quiet and views are used, the heads are refreshed until the feed is stale", async (t) => {
  const rig = createRig(t);
  await rig.send(...block(101n));
  rig.view();
  await rig.pass(400);
  assert.equal(rig.heads.looks, 0);
  await rig.pass(600);
  assert.ok(rig.heads.looks >= 1);
  await rig.pass(10_000);
  const { looks } = rig.heads;
  await rig.pass(10_000);
  assert.equal(rig.heads.looks, looks);
});

test("a feed that is three blocks behind is stale, and never shown", async (t) => {
  const rig = createRig(t);
  for (let number = 98n; number < 104n; number++) {
    await rig.send(...block(number - 3n));
    assert.equal(rig.shown(), "stale latest");
    await sealBlock(rig, number + 3n);
    await rig.pass(2_000);
  }
  assert.deepEqual(await rig.counted("feedMessages"), { old: 12 });
  await assertLive(rig, 107n);
});

test("a feed of another chain: other numbers, other parents, other chain ids", async (t) => {
  const rig = createRig(t);
  await rig.send(...block(50_000_000n), flashblock(0, { parentHash: hashOf(0xbad) }));
  assert.equal(rig.shown(), "stale latest");
  rig.fake.say("101-0", { unverified: "foreignChain" });
  await rig.send(flashblock(0, { payload: payloadOf(9), transactions: [raw(1)] }));
  assert.deepEqual([rig.view().mode, rig.view().stateFrom], ["unverified", "latest"]);
  await sealBlock(rig, 101n);
  await assertLive(rig, 102n);
});

test("a restarted node whose heads stop and then jump", async (t) => {
  const rig = await createBegunRig(t);
  for (let number = 101n; number <= 107n; number++) {
    await rig.send(...block(number));
    await rig.pass(2_000);
  }
  assert.equal(rig.view().blocks.length, 5, "no more than five blocks above the head");
  await rig.pass(6_000);
  assert.equal(rig.shown(), "stale latest");
  await sealBlock(rig, 112n);
  await assertLive(rig, 113n);
});

test("after a deep reorganisation the heads go back and the feed starts again", async (t) => {
  const rig = createRig(t, { head: 100n });
  for (let number = 101n; number <= 110n; number++) {
    await rig.send(...block(number));
    await sealBlock(rig, number);
  }
  await rig.send(...block(111n));
  rig.heads.move({ number: 95n, hash: hashOf(0x95) });
  assertNotOlder(rig);
  assert.equal(rig.shown(), "live latest");
  await rig.send(flashblock(0, { number: 96n, payload: payloadOf(0x96), parentHash: hashOf(0x95) }));
  assert.equal(rig.shown(), "96-0");
});
