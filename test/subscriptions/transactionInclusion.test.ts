import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { unavailable } from "../../src/jsonrpc/rpcError.ts";
import { hashOf } from "../support/builders/heads.ts";
import { createPendingBlock, hashOfName } from "../support/builders/pendingBlock.ts";
import { createRig, extension, transaction } from "./eventRig.ts";

type Rig = ReturnType<typeof createRig>;

const KIND = "transactionInclusion";
const ONE = hashOfName("one");

const receiptIn = (number: bigint, fork = 0, index = 0) => ({
  transactionHash: ONE,
  blockHash: hashOf(number, fork),
  blockNumber: formatQuantity(number),
  transactionIndex: formatQuantity(index),
  status: "0x1",
});

/** Sets a block, with the transaction or without it. */
const seal = ({ results }: Rig, number: bigint, hasIt: boolean, fork = 0): void => {
  const hash = hashOf(number, fork);
  results.set(`eth_getBlockByHash ${hash}`, {
    number: formatQuantity(number),
    transactions: hasIt ? [{ hash: ONE }] : [],
  });
  results.set(`eth_getBlockReceipts ${hash}`, hasIt ? [receiptIn(number, fork)] : []);
};

const notification = (status: string, number: bigint, fork = 0) => ({
  status,
  blockHash: hashOf(number, fork),
  blockNumber: formatQuantity(number),
  transactionIndex: "0x0",
  receipt: status === "reorged" ? null : receiptIn(number, fork),
});

const statusesOf = (results: readonly unknown[]) => results.map((result) => Reflect.get(Object(result), "status"));

const setReceipt = ({ results }: Rig, receipt: unknown, hash: Hash = ONE) =>
  results.set(`eth_getTransactionReceipt ${hash}`, receipt);

test("a receipt of another branch, and of a block above the head, is no inclusion", async () => {
  const rig = createRig();
  setReceipt(rig, receiptIn(9n, 1));
  await rig.subscribe(KIND, { hash: ONE });
  setReceipt(rig, receiptIn(11n));
  await rig.subscribe(KIND, { hash: ONE });
  await turn();
  assert.equal(rig.openCount(), 2);
  seal(rig, 11n, true);
  await rig.head(11n);
  await rig.sentCount(2);
  assert.equal(rig.openCount(), 0);
  rig.close();
});

test("a node that fails, or does not have the block yet, is asked again at the next head", async () => {
  const rig = createRig();
  setReceipt(rig, unavailable("the node is down"));
  await rig.subscribe(KIND, { hash: ONE });
  await turn();
  await rig.head(11n);
  setReceipt(rig, null);
  await rig.head(12n);
  setReceipt(rig, receiptIn(10n));
  await rig.head(13n);
  await rig.sentCount(1);
  assert.equal(rig.openCount(), 0);
  rig.close();
});

test("with includeReorgs, it reports each inclusion, each reorganisation and the final block, and then ends", async () => {
  const rig = createRig();
  const notified = await rig.subscribe(KIND, { hash: ONE.toUpperCase().replace("0X", "0x"), includeReorgs: true });
  seal(rig, 11n, true);
  await rig.head(11n);
  await rig.sentCount(1);
  seal(rig, 11n, false, 1);
  seal(rig, 12n, true, 1);
  await rig.head(12n, { fork: 1, from: 1 });
  await rig.sentCount(3);
  // No block is read while the transaction only has to become final.
  const reads = rig.asked.length;
  await rig.head(13n, { fork: 1, finalized: 11n });
  assert.equal(rig.asked.length, reads);
  setReceipt(rig, unavailable("the node is down"));
  await rig.head(14n, { fork: 1, finalized: 12n });
  await turn();
  setReceipt(rig, receiptIn(12n, 1));
  await rig.head(15n, { fork: 1, finalized: 12n });
  await rig.sentCount(4);
  assert.deepEqual(notified(), [
    notification("included", 11n),
    notification("reorged", 11n),
    notification("included", 12n, 1),
    notification("finalized", 12n, 1),
  ]);
  assert.equal(rig.openCount(), 0);
  rig.close();
});

test("a connection that closes while its subscriptions are told of a reorganisation leaves nothing behind", async () => {
  const rig = createRig();
  for (let count = 0; count < 2; count++) {
    await rig.subscribe(KIND, { hash: ONE, includeReorgs: true });
  }
  seal(rig, 11n, true);
  await rig.head(11n);
  await rig.sentCount(2);
  rig.whenSent(() => rig.endAll());
  const reads = rig.asked.length;
  await rig.head(11n, { fork: 1, from: 1 });
  await rig.head(12n, { fork: 1 });
  assert.equal(rig.openCount(), 0);
  assert.equal(rig.asked.length, reads);
  rig.close();
});

test("a pre-confirmed transaction is reported once, before it is included", async () => {
  const rig = createRig();
  const notified = await rig.subscribe(KIND, { hash: ONE });
  const late = createPendingBlock(11n, 1, [transaction("two"), { ...transaction("one"), isLate: true }]);
  rig.pending.emit({ extended: [extension(late, 0)] });
  assert.deepEqual(notified(), []);
  const block = createPendingBlock(11n, 1, [transaction("two"), transaction("one")]);
  rig.pending.emit({ extended: [extension(block, 0, "logs")] });
  rig.pending.emit({ extended: [extension(block, 1)] });
  seal(rig, 11n, true);
  await rig.head(11n);
  await rig.sentCount(2);
  assert.deepEqual(statusesOf(notified()), ["preconfirmed", "included"]);
  const [first] = notified();
  const { blockNumber, blockHash, transactionIndex, receipt } = Object(first);
  assert.deepEqual([blockNumber, blockHash, transactionIndex], ["0xb", block.hash, "0x1"]);
  assert.equal(receipt.transactionHash, ONE);
  rig.close();
});

for (const includeReorgs of [true, false]) {
  test(`a pre-confirmed transaction that its block lacks may be pre-confirmed again (includeReorgs: ${includeReorgs})`, async () => {
    const rig = createRig();
    const notified = await rig.subscribe(KIND, { hash: ONE, includeReorgs });
    rig.pending.emit({ extended: [extension(createPendingBlock(11n, 1, [transaction("one")]), 0)] });
    seal(rig, 11n, false);
    await rig.head(11n);
    await turn();
    rig.pending.emit({ extended: [extension(createPendingBlock(12n, 1, [transaction("one")]), 0)] });
    const expected = ["preconfirmed", ...(includeReorgs ? ["reorged"] : []), "preconfirmed"];
    assert.deepEqual(statusesOf(notified()), expected);
    rig.close();
  });
}

test("a transaction that is pre-confirmed in another block is taken back first", async () => {
  const rig = createRig();
  const notified = await rig.subscribe(KIND, { hash: ONE, includeReorgs: true });
  for (const number of [11n, 11n, 12n]) {
    rig.pending.emit({ extended: [extension(createPendingBlock(number, 1, [transaction("one")]), 0)] });
  }
  assert.deepEqual(statusesOf(notified()), ["preconfirmed", "reorged", "preconfirmed"]);
  rig.close();
});

test("a transaction is sent once, when the subscription has its place", async () => {
  const rig = createRig();
  const raw = "0x02aa";
  const hash = hashOfName(raw);
  setReceipt(rig, { ...receiptIn(10n), transactionHash: hash }, hash);
  const notified = await rig.subscribe(KIND, { transaction: raw });
  await rig.sentCount(1);
  assert.deepEqual(statusesOf(notified()), ["included"]);
  assert.deepEqual(rig.sent, [raw]);
  for (let count = 0; count < 10; count++) {
    await rig.subscribe("newHeads");
  }
  await assert.rejects(rig.subscribe(KIND, { transaction: raw }), { code: -32_600 });
  assert.deepEqual(rig.sent, [raw], "a client without room sends nothing");
  rig.close();
});

test("exactly one of transaction and hash is needed, each in its form", async () => {
  const rig = createRig();
  for (const option of [
    undefined,
    ONE,
    {},
    { includeReorgs: false },
    { hash: ONE, transaction: "0x02" },
    { hash: "0x1" },
    { transaction: "02" },
    { transaction: 2 },
    { hash: ONE, includeReorgs: "yes" },
  ]) {
    await assert.rejects(rig.subscribe(KIND, option), { code: -32_602 });
  }
  await assert.rejects(rig.subscribe(KIND, { includeReorgs: false }), {
    message: "exactly one of transaction or hash must be provided",
  });
  assert.deepEqual(rig.sent, []);
  rig.close();
});
