import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { flashblock, raw } from "../support/builders/flashblocks.ts";
import { ALICE, account, createRig } from "../support/fakes/pendingRig.ts";
import { sealed } from "./sealBlock.ts";

const nonceOf = (nonce: bigint) => ({
  changes: [[ALICE, { account: account(nonce, nonce), isCleared: false, slots: [] }]] as const,
});

test("a message that cannot be executed is shown, and the node answers state reads", async (t) => {
  const rig = createRig(t);
  rig.answers.set("eth_getBlockByNumber pending", { number: "0x67" });
  rig.heads.move({ number: 101n });
  rig.fake.say("102-1", { unverified: "unexecutable" });
  await rig.send(flashblock(0, { number: 102n }));
  assert.equal(rig.view().stateFrom, "view");
  await rig.send(flashblock(1, { number: 102n, transactions: [raw(1)] }));
  const { mode, blocksFrom, stateFrom, newest } = rig.view();
  assert.deepEqual([mode, blocksFrom, stateFrom, newest?.index], ["unverified", "view", "node", 1]);
  assert.equal(newest?.receipts(), undefined);
  assert.deepEqual(await rig.counted("pendingMismatches"), { unexecutable: 1 });
  assert.deepEqual(await rig.counted("pendingUnverified"), { unexecutable: 1 });
});

for (const [unverified, isFound] of [
  ["unexecutable", true],
  ["gas", false],
] as const) {
  test(`a block whose newest message is unverified because of ${unverified} is ${isFound ? "" : "not "}read by its hash`, async (t) => {
    const rig = createRig(t);
    rig.fake.say("101-1", { unverified });
    await rig.send(flashblock(0), flashblock(1, { transactions: [raw(1)] }));
    const { newest, byHash } = rig.view();
    assert.equal(newest?.index, 1);
    assert.equal(byHash(newest.hash) !== undefined, isFound);
  });
}

test("during a slow execution the last verified prefix is served", async (t) => {
  const rig = createRig(t);
  for (const index of [0, 1, 2]) {
    rig.fake.say(`101-${index}`, nonceOf(BigInt(index + 1)));
  }
  await rig.send(flashblock(0));
  const release = rig.fake.hold();
  await rig.send(flashblock(1, { transactions: [raw(1)] }), flashblock(2, { transactions: [raw(2)] }));
  for (let waitedMs = 0; waitedMs < 1_950; waitedMs += 50) {
    assert.deepEqual([rig.shown(), rig.view().mode, rig.view().stateFrom], ["101-0", "live", "view"]);
    assert.equal(rig.view().nonce(ALICE, 0n), 1n);
    await rig.pass(50);
  }
  release();
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode, rig.view().nonce(ALICE, 0n)], ["101-2", "live", 3n]);
  assert.deepEqual(await rig.counted("pendingUnverified"), {});
});

test("an execution longer than a block time is counted and shown without state, then with it", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0));
  const release = rig.fake.hold();
  await rig.send(flashblock(1, { transactions: [raw(1)] }));
  await rig.pass(1_000);
  await rig.send(flashblock(2, { transactions: [raw(2)] }));
  await rig.pass(950);
  assert.equal(rig.shown(), "101-0");
  await rig.pass(50);
  assert.equal(rig.shown(), "101-2", "what follows is not waited for either");
  assert.deepEqual([rig.view().mode, rig.view().stateFrom], ["unverified", "latest"]);
  assert.deepEqual(await rig.counted("pendingUnverified"), { late: 1 });
  await rig.send(flashblock(3, { transactions: [raw(3)] }));
  await rig.pass(100);
  assert.equal(rig.shown(), "101-3");
  release();
  await turn();
  assert.equal(rig.view().mode, "live");
  assert.deepEqual(await rig.counted("pendingUnverified"), { late: 1 });
  const brought = rig.changes
    .flatMap(({ extended }) => extended)
    .map(({ brings, fromTransaction, toTransaction }) => [brings, fromTransaction, toTransaction]);
  assert.deepEqual(brought, [
    ["transactions", 0, 0],
    ["transactions", 0, 2],
    ["transactions", 2, 3],
    ["logs", 0, 3],
  ]);
});

test("a message that waited for an earlier execution has the rest of its block time", async (t) => {
  const rig = createRig(t);
  const sealedBlock = [flashblock(0), flashblock(1)];
  await rig.send(flashblock(0));
  const release = rig.fake.hold();
  await rig.send(flashblock(1));
  await rig.pass(300);
  rig.heads.move(sealed(sealedBlock));
  await rig.send(flashblock(0, { number: 102n }));
  await rig.pass(1_000);
  assert.equal(rig.shown(), "live latest");
  release();
  const releaseNext = rig.fake.hold();
  await turn();
  await rig.pass(950);
  assert.equal(rig.shown(), "live latest");
  await rig.pass(50);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "unverified"]);
  releaseNext();
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "live"]);
});

test("while a block's first message is unverified, the sealed block is served as live", async (t) => {
  const rig = createRig(t);
  const release = rig.fake.hold();
  await rig.send(flashblock(0));
  for (let waitedMs = 0; waitedMs < 1_950; waitedMs += 50) {
    assert.equal(rig.shown(), "live latest");
    await rig.pass(50);
  }
  release();
  await turn();
  assert.equal(rig.shown(), "101-0");
});
