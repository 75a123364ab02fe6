import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type Address, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { Flashblock } from "../../src/feed/message.ts";
import { flashblock, hashOf, payloadOf } from "../support/builders/flashblocks.ts";
import { rootOf } from "../support/fakes/fakeExecutor.ts";
import { createRig } from "../support/fakes/pendingRig.ts";

const ALICE: Address = `0x${"aa".repeat(20)}`;
const SLOT = hashOf(1);
const raw = (value: number): `0x${string}` => `0x02${value.toString(16).padStart(4, "0")}`;
const txHash = (value: number): Hash => keccak256Hex(parseData(raw(value)));
const account = (nonce: bigint, balance: bigint) => ({ nonce, balance, codeHash: hashOf(3) });
const decode = (body: Uint8Array | undefined): unknown => JSON.parse(new TextDecoder().decode(body));

/** Creates the sealed block of these messages. */
const sealed = (messages: readonly Flashblock[], number = 101n) => {
  const newest = messages.at(-1);
  if (!newest) {
    throw new Error("no messages");
  }
  const raws = messages.flatMap(({ diff }) => diff.transactions);
  return {
    number,
    logsBloom: parseData(newest.diff.logsBloom),
    header: {
      transactionsRoot: rootOf(raws),
      gasUsed: `0x${newest.diff.gasUsed.toString(16)}`,
      receiptsRoot: newest.diff.receiptsRoot,
    },
  };
};

test("each message creates one view, and its writes are read from that view", async (t) => {
  const rig = createRig(t);
  const change = (balance: bigint) => ({
    account: account(1n, balance),
    isCleared: false,
    slots: [[SLOT, Uint8Array.of(5)]] as const,
  });
  rig.fake.say("101-0", { changes: [[ALICE, change(10n)]] });
  rig.fake.say("101-1", { changes: [[ALICE, { ...change(20n), slots: [] }]] });
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  const first = rig.view();
  await rig.send(flashblock(1, { transactions: [raw(2)] }));
  const second = rig.view();
  assert.equal(first.account(ALICE)?.account?.balance, 10n);
  assert.equal(second.account(ALICE)?.account?.balance, 20n);
  assert.deepEqual(second.storage(ALICE, SLOT), Uint8Array.of(5));
  assert.equal(second.storage(ALICE, hashOf(2)), undefined);
  assert.equal(second.nonce(ALICE, 0n), 1n);
  assert.deepEqual([second.mode, second.blocksFrom, second.stateFrom], ["live", "view", "view"]);
  assert.deepEqual(second.base, { ...rig.heads.current().latest });
  assert.deepEqual(second.find(txHash(2))?.index, 1);
  assert.deepEqual(first.find(txHash(2)), undefined);
});

test("the block hash is the message's, and each hash finds its own prefix of the block", async (t) => {
  const one = createRig(t);
  await one.send(flashblock(0, { transactions: [raw(1)] }));
  await one.send(flashblock(1, { transactions: [raw(2)] }));
  const { newest, byHash } = one.view();
  assert.equal(newest?.hash, hashOf(101_001));
  assert.equal(byHash(hashOf(7)), undefined);
  assert.equal(one.view().byHash(hashOf(101_000))?.transactionHashes.length, 1);
  assert.equal(one.view().byHash(hashOf(101_001))?.transactionHashes.length, 2);
  const body = decode(newest?.body(false)) as Record<string, unknown>;
  assert.deepEqual(body.transactions, [txHash(1), txHash(2)]);
  assert.deepEqual(
    [body.number, body.hash, body.parentHash, body.gasUsed],
    ["0x65", hashOf(101_001), hashOf(100), "0xa410"],
  );
  assert.deepEqual([body.uncles, body.withdrawals], [[], []]);
});

test("a block sealed with the hash of its last message is no longer shown as pending", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  await rig.send(flashblock(1, { transactions: [raw(2)] }));
  rig.heads.move({ number: 101n, hash: hashOf(101_001) });
  assert.equal(rig.view().byHash(hashOf(101_001)), undefined);
  assert.equal(rig.view().byHash(hashOf(101_000))?.transactionHashes.length, 1);
});

test("a sealed block that equals the view moves the base, and the blocks above stay", async (t) => {
  const rig = createRig(t);
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
    rig.fake.rebased.slice(1).map(({ base, through }) => [base.number, through]),
    [[101n, 2]],
  );
  await turn();
  assert.equal(rig.fake.jobs.length, jobs, "nothing is executed again");
  assert.deepEqual(await rig.counted("pendingMismatches"), {});
});

test("a sealed block that differs is counted, dropped transactions are published, and later blocks are executed again", async (t) => {
  const rig = createRig(t);
  const log = { address: ALICE, topics: [], data: "0x01" as const };
  rig.fake.say("101-1", { logs: [log] });
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
  const removed = rig.changes
    .flatMap((change) => change.removed)
    .map((body) => decode(body) as Record<string, unknown>);
  assert.deepEqual(
    removed.map(({ transactionHash, removed }) => [transactionHash, removed]),
    [[txHash(2), true]],
  );
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

test("without a pending block the newest sealed block answers until the next block begins", async (t) => {
  const rig = createRig(t);
  const block = [flashblock(0), flashblock(1)];
  await rig.send(...block);
  rig.heads.move(sealed(block));
  assert.equal(rig.shown(), "live latest");
  await rig.send(flashblock(0, { number: 102n }));
  assert.equal(rig.shown(), "102-0");
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
  const rig = createRig(t);
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

test("after a gap the prefix stays until the head passes it, then the feed is live again", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0), flashblock(1), flashblock(3));
  assert.equal(rig.shown(), "101-1");
  assert.equal(rig.view().mode, "degraded");
  await rig.send(flashblock(0, { number: 102n }), flashblock(1, { number: 102n }));
  assert.equal(rig.shown(), "101-1");
  rig.heads.move({ number: 101n });
  await turn();
  assert.equal(rig.shown(), "102-1");
  assert.equal(rig.view().mode, "live");
  assert.deepEqual(await rig.counted("feedGaps"), { feedGaps: 2 });
});

test("a replacement payload removes the old logs and publishes its own", async (t) => {
  const rig = createRig(t);
  const log = { address: ALICE, topics: [hashOf(9)], data: "0x01" as const };
  rig.fake.say("101-1", { logs: [log] });
  await rig.send(flashblock(0), flashblock(1, { transactions: [raw(1)] }));
  const payload = payloadOf(0xff);
  await rig.send(flashblock(0, { payload, blockHash: hashOf(0xf0) }));
  const taken = rig.changes.flatMap(({ removed }) => removed).map((body) => decode(body) as Record<string, unknown>);
  assert.deepEqual(
    taken.map(({ blockHash, removed }) => [blockHash, removed]),
    [[hashOf(101_001), true]],
  );
  await rig.send(flashblock(1, { payload, blockHash: hashOf(0xf1), transactions: [raw(1)] }));
  assert.equal(rig.view().newest?.hash, hashOf(0xf1));
  assert.equal(rig.view().newest?.logs().length, 1);
  rig.heads.move(sealed([flashblock(0, { payload }), flashblock(1, { payload, transactions: [raw(1)] })]));
  await turn();
  assert.deepEqual(await rig.counted("pendingDropped"), {}, "it was sealed after all");
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

const nonceOf = (nonce: bigint) => ({
  changes: [[ALICE, { account: account(nonce, nonce), isCleared: false, slots: [] }]] as const,
});

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

test("a reorganisation of the parent discards the pending blocks and removes their logs", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", { logs: [{ address: ALICE, topics: [], data: "0x" }] });
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  rig.heads.move({ number: 100n, hash: hashOf(0xbad) });
  assert.equal(rig.shown(), "live latest");
  assert.equal(rig.changes.flatMap(({ removed }) => removed).length, 1);
  await rig.send(flashblock(0, { payload: payloadOf(7), parentHash: hashOf(0xbad) }));
  assert.equal(rig.shown(), "101-0");
  rig.heads.move({ number: 98n, hash: hashOf(0xbeef) });
  assert.equal(rig.shown(), "live latest");
  await rig.send(flashblock(0, { number: 99n, parentHash: hashOf(0xbeef) }));
  assert.equal(rig.shown(), "99-0");
});

test("all reads of one view are of one moment", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  const before = rig.view();
  rig.heads.move({ number: 101n }, { number: 102n });
  assert.equal(before.newest?.number, 101n);
  assert.deepEqual(before.newest?.transactionHashes, [txHash(1)]);
  assert.equal(rig.view().base.number, 102n);
});
