import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { flashblock, hashOf, payloadOf, raw, txHash } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";
import { createBegunRig, sealed } from "./sealBlock.ts";

test("a sealed block that equals the view moves the base, and the blocks above stay", async (t) => {
  const rig = await createBegunRig(t);
  const block = [flashblock(0, { transactions: [raw(1)] }), flashblock(1, { transactions: [raw(2)] })];
  await rig.send(...block, flashblock(0, { number: 102n }));
  assert.equal(rig.shown(), "102-0");
  assert.equal(rig.view().blocks.length, 2);
  const jobs = rig.fake.jobs.length;
  rig.heads.move(sealed(block));
  assert.equal(rig.shown(), "102-0");
  assert.equal(rig.view().blocks.length, 1);
  assert.equal(rig.view().base.number, 101n);
  assert.deepEqual(
    rig.fake.rebased.map(({ base, through }) => [base.number, through]),
    [[101n, 3]],
  );
  await turn();
  assert.equal(rig.fake.jobs.length, jobs, "nothing is executed again");
  assert.deepEqual(await rig.counted("pendingMismatches"), {});
});

test("a sealed block that differs is counted, so are dropped transactions, and later blocks are executed again", async (t) => {
  const rig = createRig(t);
  const block = [flashblock(0, { transactions: [raw(1)] }), flashblock(1, { transactions: [raw(2)] })];
  await rig.send(...block, flashblock(0, { number: 102n }));
  const jobs = rig.fake.jobs.length;
  rig.answers.set("eth_getBlockByHash", { transactions: [txHash(1), txHash(9)] });
  rig.heads.move(sealed([block[0] ?? flashblock(0), flashblock(1, { transactions: [raw(9)] })]));
  assert.equal(rig.fake.rebased.at(-1)?.through, undefined);
  await turn();
  assert.equal(rig.fake.jobs.length, jobs + 1);
  assert.equal(rig.shown(), "102-0");
  assert.deepEqual(await rig.counted("pendingMismatches"), { transactions: 1 });
  assert.deepEqual(await rig.counted("pendingDropped"), { pendingDropped: 1 });
});

test("a transaction of a replaced payload does not count as dropped while no node returns the block that has it", async (t) => {
  const dropped: string[] = [];
  const rig = await createBegunRig(t, { onDropped: (hashes) => dropped.push(...hashes) });
  await rig.send(flashblock(0), flashblock(1, { transactions: [raw(1)] }));
  const payload = payloadOf(0xff);
  await rig.send(flashblock(0, { payload }), flashblock(1, { payload, transactions: [raw(2)] }));
  await rig.send(flashblock(0, { number: 102n, transactions: [raw(3)] }));
  assert.equal(rig.shown(), "102-0");
  rig.answers.set(`eth_getBlockByHash ${hashOf(102n)}`, { transactions: [txHash(4)] });
  rig.heads.move(
    sealed([flashblock(0), flashblock(1, { transactions: [raw(2), raw(1)] })]),
    sealed([flashblock(0, { number: 102n, transactions: [raw(4)] })], 102n),
  );
  await turn();
  assert.deepEqual(dropped, [txHash(3)]);
  assert.deepEqual(await rig.counted("pendingDropped"), { pendingDropped: 1 });
});

test("a block sealed before its last messages arrive counts no difference", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  rig.answers.set("eth_getBlockByHash", { transactions: [txHash(1), txHash(2)] });
  rig.heads.move(sealed([flashblock(0, { transactions: [raw(1)] }), flashblock(1, { transactions: [raw(2)] })]));
  await turn();
  assert.equal(rig.fake.rebased.at(-1)?.through, undefined);
  assert.deepEqual(await rig.counted("pendingMismatches"), {});
  assert.deepEqual(await rig.counted("pendingDropped"), {});
});

test("if a block is sealed while its last message executes, the base waits for the execution", async (t) => {
  const rig = createRig(t);
  const block = [flashblock(0), flashblock(1, { transactions: [raw(1)] })];
  await rig.send(block[0] ?? flashblock(0));
  const release = rig.fake.hold();
  await rig.send(block[1] ?? flashblock(1), flashblock(0, { number: 102n }));
  rig.heads.move(sealed(block));
  assert.equal(rig.shown(), "live latest");
  assert.equal(rig.fake.rebased.length, 1);
  release();
  await turn();
  assert.equal(rig.fake.rebased.at(-1)?.through, 2);
  assert.equal(rig.shown(), "102-0");
});

test("a late message of a sealed block executes to its end, and the base moves with its writes", async (t) => {
  const rig = createRig(t);
  const block = [flashblock(0), flashblock(1, { transactions: [raw(1)] })];
  await rig.send(block[0] ?? flashblock(0));
  const release = rig.fake.hold();
  await rig.send(block[1] ?? flashblock(1));
  await rig.pass(2_000);
  assert.equal(rig.shown(), "101-1");
  assert.equal(rig.view().mode, "unverified");
  rig.heads.move(sealed(block));
  assert.equal(rig.fake.rebased.at(-1)?.through, 2);
  release();
  await turn();
  await rig.send(flashblock(0, { number: 102n }));
  assert.equal(rig.shown(), "102-0");
  assert.equal(rig.view().mode, "live");
});

test("a message that failed on the old base is executed again on the new base", async (t) => {
  const rig = await createBegunRig(t);
  rig.fake.say("102-0", { unverified: "unexecutable" });
  const block = [flashblock(0), flashblock(1)];
  await rig.send(...block, flashblock(0, { number: 102n }));
  assert.equal(rig.view().mode, "unverified");
  rig.fake.say("102-0", {});
  rig.heads.move(sealed(block));
  await turn();
  assert.equal(rig.shown(), "102-0");
  assert.equal(rig.view().mode, "live");
});
