import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { flashblock, hashOf, payloadOf, raw, txHash } from "../support/builders/flashblocks.ts";
import { ALICE, account, createRig, decode } from "./pendingRig.ts";
import { sealed } from "./sealBlock.ts";

const SLOT = hashOf(1);

test("each message creates one view, and its writes are read from that view", async (t) => {
  const rig = createRig(t);
  const change = (balance: bigint) => ({
    account: account(1n, balance),
    isCleared: false,
    slots: new Map([[SLOT, Uint8Array.of(5)]]),
  });
  rig.fake.say("101-0", { changes: [[ALICE, change(10n)]] });
  rig.fake.say("101-1", { changes: [[ALICE, { ...change(20n), slots: new Map() }]] });
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

test("the state by a block's hash is that of its prefix, also of messages that no view ended with, and after the seal", async (t) => {
  const rig = createRig(t);
  const messages = [0, 1, 2].map((index) => flashblock(index, { transactions: [raw(index + 1)] }));
  for (const { index } of messages) {
    const change = { account: account(BigInt(index + 1), 5n), isCleared: false, slots: new Map() };
    rig.fake.say(`101-${index}`, { changes: [[ALICE, change]] });
  }
  const release = rig.fake.hold();
  await rig.send(...messages);
  release();
  await turn();
  const check = () => {
    for (const { index } of messages) {
      const shown = rig.view().atHash(hashOf(101_000 + index));
      assert.deepEqual([shown?.newest?.index, shown?.nonce(ALICE, 0n)], [index, BigInt(index + 1)]);
      assert.equal(shown?.base.number, 100n);
    }
  };
  check();
  rig.heads.move(sealed(messages));
  await turn();
  check();
  assert.equal(rig.view().atHash(hashOf(7)), undefined);
  await rig.pass(10_100);
  assert.equal(rig.view().atHash(hashOf(101_000)), undefined);
});

test("a block whose state is not verified has no state by its hash", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", { unverified: "unexecutable" });
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  assert.ok(rig.view().byHash(hashOf(101_000)));
  assert.equal(rig.view().atHash(hashOf(101_000)), undefined);
});

test("a block sealed with the hash of its last message is no longer shown as pending", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  await rig.send(flashblock(1, { transactions: [raw(2)] }));
  rig.heads.move({ number: 101n, hash: hashOf(101_001) });
  assert.equal(rig.view().byHash(hashOf(101_001)), undefined);
  assert.equal(rig.view().byHash(hashOf(101_000))?.transactionHashes.length, 1);
});

test("a replacement payload is shown and published", async (t) => {
  const rig = createRig(t);
  const log = { address: ALICE, topics: [hashOf(9)], data: "0x01" as const };
  rig.fake.say("101-1", { logs: [log] });
  await rig.send(flashblock(0), flashblock(1, { transactions: [raw(1)] }));
  const payload = payloadOf(0xff);
  await rig.send(flashblock(0, { payload, blockHash: hashOf(0xf0) }));
  rig.changes.length = 0;
  await rig.send(flashblock(1, { payload, blockHash: hashOf(0xf1), transactions: [raw(1)] }));
  assert.equal(rig.view().newest?.hash, hashOf(0xf1));
  assert.equal(rig.view().newest?.logs().length, 1);
  assert.deepEqual(
    rig.changes.flatMap(({ extended }) => extended).map(({ block: { hash }, kind }) => [hash, kind]),
    [[hashOf(0xf1), "transactions"]],
  );
});

test("a reorganisation of the parent discards the pending blocks", async (t) => {
  const rig = createRig(t);
  await rig.send(flashblock(0, { transactions: [raw(1)] }));
  rig.heads.move({ number: 100n, hash: hashOf(0xbad) });
  assert.equal(rig.shown(), "live latest");
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
