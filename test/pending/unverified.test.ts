import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { flashblock, raw } from "../support/builders/flashblocks.ts";
import { ALICE, account, createRig } from "./pendingRig.ts";
import { block, createBegunRig, type Rig, sealed } from "./sealBlock.ts";

const nonceOf = (nonce: bigint) => ({
  changes: [[ALICE, { account: account(nonce, nonce), isCleared: false, slots: new Map() }]] as const,
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
    rig.fake.say("101-0", { unverified });
    await rig.send(flashblock(0, { transactions: [raw(1)] }));
    const { newest, byHash } = rig.view();
    assert.equal(newest?.index, 0);
    assert.equal(byHash(newest.hash) !== undefined, isFound);
  });
}

for (const unverified of ["gas", "bloom", "receiptsRoot", "undecodable", "foreignChain", "rejected"] as const) {
  test(`a message that is wrong (${unverified}) is treated like a gap: the verified prefix serves`, async (t) => {
    const rig = createRig(t);
    rig.fake.say("101-1", nonceOf(5n));
    rig.fake.say("101-2", { unverified });
    rig.fake.say("101-3", { unverified: "unexecutable" });
    const messages = [0, 1, 2, 3].map((index) => flashblock(index, { transactions: [raw(index)] }));
    await rig.send(...messages);
    assert.deepEqual([rig.shown(), rig.view().mode, rig.view().stateFrom], ["101-1", "degraded", "view"]);
    assert.equal(rig.view().nonce(ALICE, 0n), 5n);
    rig.fake.say("102-0", { unverified: "unexecutable" });
    await rig.send(flashblock(0, { number: 102n, transactions: [raw(9)] }));
    assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "degraded"]);
    rig.fake.say("102-0", {});
    rig.heads.move(sealed(messages));
    await turn();
    assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "live"]);
    assert.deepEqual(await rig.counted("pendingUnverified"), {});
  });
}

for (const unverified of ["failed", "tooMuchState"] as const) {
  test(`a message that could not be executed (${unverified}) does not cost the verified prefix`, async (t) => {
    const rig = createRig(t);
    rig.answers.set("eth_getBlockByNumber pending", { number: "0x66" });
    rig.fake.say("101-1", nonceOf(5n));
    rig.fake.say("101-2", { unverified });
    const messages = [0, 1, 2].map((index) => flashblock(index, { transactions: [raw(index)] }));
    await rig.send(...messages);
    assert.deepEqual([rig.shown(), rig.view().mode, rig.view().stateFrom], ["101-1", "degraded", "view"]);
    assert.equal(rig.view().nonce(ALICE, 0n), 5n, "the nonce does not go back to the node's");
    // It may be right, so that another replica may show it.
    const hash = messages[2]?.commitments.blockHash;
    assert.ok(hash !== undefined && rig.view().byHash(hash) !== undefined);
    rig.heads.move(sealed(messages));
    await rig.send(flashblock(0, { number: 102n, transactions: [raw(9)] }));
    await turn();
    assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "live"]);
    assert.deepEqual(await rig.counted("pendingUnverified"), {});
    assert.deepEqual(await rig.counted("pendingDropped"), {});
  });
}

for (const isExecuted of [true, false]) {
  test(`a chain ${isExecuted ? "with messages that cannot be executed" : "without an executor"} costs one line of the log`, async (t) => {
    const rig = createRig(t);
    if (!isExecuted) {
      rig.fake.executor.execute = () => Promise.reject(new Error("nothing is executed"));
    }
    for (let number = 101n; number <= 105n; number++) {
      rig.fake.say(`${number}-1`, { unverified: "unexecutable" });
      rig.fake.say(`${number}-2`, { unverified: "unexecutable" });
      await rig.send(...block(number, 3));
      assert.equal(rig.view().mode, "unverified");
      rig.heads.move({ number });
      await turn();
    }
    assert.equal(rig.warnings.filter((line) => /verified/.test(line)).length, 1);
  });
}

test("in stale, a nonce stays at its last verified value until the head passes its block", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", nonceOf(5n));
  rig.fake.say("101-1", nonceOf(6n));
  rig.fake.say("101-2", { unverified: "unexecutable" });
  await rig.send(...[0, 1, 2].map((index) => flashblock(index, { transactions: [raw(index)] })));
  assert.deepEqual([rig.view().mode, rig.view().nonce(ALICE, 2n)], ["unverified", 6n]);
  await rig.pass(7_000);
  assert.deepEqual([rig.view().mode, rig.view().nonce(ALICE, 2n)], ["stale", 6n]);
  assert.equal(rig.view().nonce(ALICE, 9n), 9n, "the node has more");
  rig.heads.move({ number: 101n });
  await turn();
  assert.equal(rig.view().nonce(ALICE, 2n), 2n);
});

test("a wrong first message of the next block does not cost the verified block below", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-1", nonceOf(5n));
  rig.fake.say("102-0", { unverified: "gas" });
  await rig.send(flashblock(0), flashblock(1), flashblock(0, { number: 102n, transactions: [raw(1)] }));
  assert.deepEqual([rig.shown(), rig.view().mode, rig.view().nonce(ALICE, 0n)], ["101-1", "degraded", 5n]);
});

/** The block and index of each newFlashblocks event. */
const announced = ({ changes }: Rig): readonly string[] =>
  changes.flatMap(({ extended }) => extended.map(({ block }) => `${block.number}-${block.index}`));

test("messages that were shown unverified stay in the view while they are executed again on the sealed block", async (t) => {
  const rig = await createBegunRig(t);
  const log = { address: ALICE, topics: [], data: "0x01" as const };
  rig.fake.say("101-0", { unverified: "gas" });
  const first = flashblock(0, { transactions: [raw(1)] });
  await rig.send(first);
  const messages = [0, 1, 2].map((index) => flashblock(index, { number: 102n, transactions: [raw(10 + index)] }));
  for (const { index } of messages) {
    rig.fake.say(`102-${index}`, { unverified: "unexecutable" });
  }
  await rig.send(...messages);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "unverified"]);
  for (const { index } of messages) {
    rig.fake.say(`102-${index}`, { ...nonceOf(BigInt(index)), logs: [log] });
  }
  const release = rig.fake.hold();
  rig.heads.move(sealed([first]));
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "unverified"]);
  release();
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode, rig.view().nonce(ALICE, 0n)], ["102-2", "live", 2n]);
  const transactions = rig.changes.flatMap(({ extended }) =>
    extended.filter(({ kind }) => kind === "transactions").map(({ block }) => `${block.number}-${block.index}`),
  );
  assert.deepEqual(transactions, ["101-0", "102-0", "102-1", "102-2"]);
  assert.deepEqual(await rig.counted("pendingDropped"), {});
});

test("verified messages above a block that differs stay in the view, without state until they are executed again", async (t) => {
  const rig = await createBegunRig(t);
  const log = { address: ALICE, topics: [], data: "0x01" as const };
  rig.fake.say("102-0", { ...nonceOf(7n), logs: [log] });
  const block = [flashblock(0, { transactions: [raw(1)] })];
  await rig.send(...block, flashblock(0, { number: 102n, transactions: [raw(9)] }));
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "live"]);
  rig.fake.say("102-0", { ...nonceOf(8n), logs: [log] });
  const release = rig.fake.hold();
  rig.heads.move(sealed([...block, flashblock(1, { transactions: [raw(2)] })]));
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "unverified"], "its state was of another block");
  assert.equal(rig.view().newest?.logs().length, 1);
  release();
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode, rig.view().nonce(ALICE, 0n)], ["102-0", "live", 8n]);
  assert.deepEqual(announced(rig), ["101-0", "102-0"]);
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
    .map(({ kind, fromTransaction, toTransaction }) => [kind, fromTransaction, toTransaction]);
  assert.deepEqual(brought, [
    ["transactions", 0, 0],
    ["transactions", 0, 2],
    ["transactions", 2, 3],
    ["logs", 0, 1],
    ["logs", 1, 2],
    ["logs", 2, 3],
  ]);
});

for (const ending of ["late", "tooMuchState"] as const) {
  test(`logs of a late message are known once it is executed, while the newest one is ${ending}`, async (t) => {
    const rig = createRig(t);
    rig.fake.say("101-1", { ...nonceOf(5n), logs: [{ address: ALICE, topics: [], data: "0x01" }] });
    rig.fake.say("101-2", ending === "late" ? {} : { unverified: ending });
    await rig.send(flashblock(0));
    const release = rig.fake.hold();
    await rig.send(flashblock(1, { transactions: [raw(1)] }));
    const releaseNewest = rig.fake.hold();
    await rig.send(flashblock(2, { transactions: [raw(2)] }));
    await rig.pass(2_000);
    assert.deepEqual([rig.shown(), rig.view().mode, rig.view().newest?.logs().length], ["101-2", "unverified", 0]);
    if (ending !== "late") {
      releaseNewest();
      await turn();
    }
    release();
    await turn();
    assert.deepEqual([rig.shown(), rig.view().mode], ["101-2", "unverified"]);
    assert.equal(rig.view().newest?.logs().length, 1);
    assert.equal(rig.view().nonce(ALICE, 0n), 5n);
    const withLogs = rig.changes.flatMap(({ extended }) => extended).filter(({ kind }) => kind === "logs");
    assert.deepEqual(
      withLogs.map(({ fromTransaction, toTransaction, block }) => [fromTransaction, toTransaction, block.index]),
      [[0, 1, 2]],
    );
    const { length } = rig.changes;
    await rig.pass(1_000);
    assert.equal(rig.changes.length, length, "nothing has changed since");
  });
}

test("in stale, a nonce counts a message that is verified since", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-1", nonceOf(5n));
  await rig.send(flashblock(0));
  const release = rig.fake.hold();
  await rig.send(flashblock(1, { transactions: [raw(1)] }));
  await rig.pass(7_000);
  assert.deepEqual([rig.view().mode, rig.view().nonce(ALICE, 0n)], ["stale", 0n]);
  release();
  await turn();
  assert.deepEqual([rig.view().mode, rig.view().nonce(ALICE, 0n)], ["stale", 5n]);
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
