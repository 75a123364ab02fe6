import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { PendingExtension } from "../../src/core/view.ts";
import { formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { hashOf } from "../support/builders/heads.ts";
import { createPendingBlock, type FakeTransaction, hashOfName } from "../support/builders/pendingBlock.ts";
import { createRig, extension, names, OTHER, rpcLog, TOKEN, topic, transaction } from "./eventRig.ts";

test("a filter of pre-confirmed transactions selects whole transactions with a matching log", async () => {
  const rig = createRig();
  const ofToken = await rig.subscribe("newFlashblockTransactions", { address: TOKEN, topics: [topic(1)] });
  const counted = await rig.subscribe("newFlashblockTransactions", { topics: [null, null] });
  const any = await rig.subscribe("newFlashblockTransactions", {});
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const silent: FakeTransaction = { name: "three", logs: [] };
  const both: FakeTransaction = {
    name: "one",
    logs: [
      { address: OTHER, topics: [] },
      { address: TOKEN, topics: [topic(1), topic(2)] },
      { address: TOKEN, topics: [topic(1)] },
    ],
  };
  const late = { ...transaction("two", TOKEN, [topic(1)]), isLate: true };
  rig.pending.emit({ extended: [extension(createPendingBlock(11n, 1, [both, late, silent]), 0)] });
  const hashes = (results: readonly unknown[]) => results.map((result) => (result as { hash: Hash }).hash);
  assert.deepEqual(hashes(ofToken()), [hashOfName("one")]);
  assert.equal((ofToken()[0] as { logs: unknown[] }).logs.length, 3);
  assert.deepEqual(hashes(counted()), [hashOfName("one")]);
  assert.deepEqual(hashes(any()), [hashOfName("one")]);
  assert.deepEqual(hashes(whole()), [hashOfName("one"), hashOfName("three")]);
  // Late transactions, and transactions that the feed never sent, are sent with the sealed block.
  const sealedLog = { ...rpcLog(11n, hashOf(11n), "four", 4), topics: [topic(1)] };
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, {
    ...sealedBlock(11n),
    transactions: ["one", "two", "three", "four"].map((name) => ({ hash: hashOfName(name) })),
  });
  rig.results.set(`eth_getBlockReceipts ${hashOf(11n)}`, [
    ...["one", "three"].map((name) => ({ transactionHash: hashOfName(name), logs: [] })),
    { transactionHash: hashOfName("two"), logs: [{ ...sealedLog, address: OTHER }] },
    { transactionHash: hashOfName("four"), logs: [{ ...sealedLog, address: TOKEN.toUpperCase().replace("X", "x") }] },
  ]);
  await rig.head(11n);
  await rig.sentCount(10);
  assert.deepEqual(hashes(ofToken()), [hashOfName("one"), hashOfName("four")]);
  assert.deepEqual(hashes(counted()), [hashOfName("one")]);
  assert.deepEqual(hashes(any()), ["one", "two", "four"].map(hashOfName));
  assert.deepEqual(hashes(whole()), ["one", "three", "two", "four"].map(hashOfName));
  await assert.rejects(rig.subscribe("newFlashblockTransactions", { topics: [7] }), { code: -32602 });
  await assert.rejects(rig.subscribe("newFlashblockTransactions", "all"), { code: -32602 });
  rig.close();
});

test("pre-confirmed blocks and transactions are sent once, whole transactions when their logs are known", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const hashes = await rig.subscribe("newFlashblockTransactions");
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const late = createPendingBlock(11n, 1, [{ ...transaction("one", TOKEN, [topic(1)]), isLate: true }]);
  rig.pending.emit({ extended: [extension(late, 0)] });
  assert.deepEqual(hashes(), [hashOfName("one")]);
  assert.deepEqual(whole(), []);
  const known = createPendingBlock(11n, 1, [transaction("one", TOKEN, [topic(1)])]);
  rig.pending.emit({ extended: [extension(known, 0, "logs")] });
  assert.deepEqual(hashes(), [hashOfName("one")]);
  const [given] = whole() as { hash: Hash; blockHash: null; status: string; logs: unknown[] }[];
  assert.equal(given?.hash, hashOfName("one"));
  assert.equal(given?.blockHash, null);
  assert.equal(given?.status, "0x1");
  assert.equal(given?.logs.length, 1);
  assert.equal(blocks().length, 1);
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, {
    ...sealedBlock(11n),
    transactions: [{ hash: hashOfName("one") }],
  });
  await rig.head(11n);
  assert.equal(hashes().length + whole().length + blocks().length, 3);
  rig.close();
});

/** Names of blocks: their number, and of a sealed one its hash. */
const numbersOf = (blocks: readonly unknown[]): readonly number[] =>
  (blocks as { readonly number: string }[]).map(({ number }) => Number(number));

const sealedBlock = (number: bigint) => ({ number: formatQuantity(number), hash: hashOf(number), transactions: [] });

test("a sealed block that the feed never sent comes before the pending blocks above it, however late it is read", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const release = rig.hold(`eth_getBlockByHash ${hashOf(11n)}`);
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, sealedBlock(11n));
  await rig.head(11n);
  rig.pending.emit({ extended: [extension(createPendingBlock(12n, 1, [transaction("one")]), 0)] });
  rig.pending.emit({ extended: [extension(createPendingBlock(12n, 2, [transaction("one"), transaction("two")]), 1)] });
  await rig.head(12n);
  rig.pending.emit({ extended: [extension(createPendingBlock(13n, 1, [transaction("three")]), 0)] });
  await turn();
  assert.deepEqual(blocks(), [], "the pending blocks wait");
  release();
  await rig.sentCount(4);
  assert.deepEqual(numbersOf(blocks()), [11, 12, 12, 13]);
  rig.close();
});

test("a pending block that replaces one below the newest is sent, and a late message of one below is not", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const emit = (...extended: readonly PendingExtension[]) => rig.pending.emit({ extended });
  const next = extension(createPendingBlock(12n, 0, [transaction("three")]), 0);
  emit(extension(createPendingBlock(11n, 0, [transaction("one")]), 0), next);
  emit(extension(createPendingBlock(11n, 1, [transaction("one"), transaction("two")]), 1));
  emit(extension(createPendingBlock(11n, 1, [transaction("one"), transaction("two")]), 0, "logs"));
  assert.deepEqual(numbersOf(blocks()), [11, 12], "subscribers have received the block above");
  emit(extension(createPendingBlock(11n, 0, [transaction("four")]), 0));
  emit(extension(createPendingBlock(11n, 1, [transaction("four"), transaction("one")]), 1));
  assert.deepEqual(numbersOf(blocks()), [11, 12, 11, 11]);
  emit(extension(createPendingBlock(12n, 0, [transaction("two")]), 0));
  emit(extension(createPendingBlock(11n, 0, [transaction("five")]), 0), next);
  assert.deepEqual(numbersOf(blocks()), [11, 12, 11, 11, 12, 11, 12]);
  rig.close();
});

test("the rest of a sealed block is sent although its first reads fail", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const hashes = await rig.subscribe("newFlashblockTransactions");
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const listed = ["one", "two"].map(hashOfName);
  const receipts = listed.map((transactionHash) => ({ transactionHash, status: "0x1", logs: [] }));
  // No node has the block yet, and then none has its receipts.
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, null);
  rig.results.set(`eth_getBlockReceipts ${hashOf(11n)}`, null);
  rig.pending.emit({ extended: [extension(createPendingBlock(11n, 1, [transaction("one")]), 0)] });
  rig.fail(1);
  await rig.head(11n);
  await rig.askedTimes(`eth_getBlockByHash ${hashOf(11n)}`, 3);
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, {
    ...sealedBlock(11n),
    transactions: listed.map((hash) => ({ hash })),
  });
  await rig.askedTimes(`eth_getBlockReceipts ${hashOf(11n)}`, 2);
  rig.results.set(`eth_getBlockReceipts ${hashOf(11n)}`, receipts);
  await rig.sentCount(5);
  assert.deepEqual(numbersOf(blocks()), [11]);
  assert.deepEqual(hashes(), listed);
  assert.deepEqual(
    whole().map((each) => [Reflect.get(Object(each), "hash"), Reflect.get(Object(each), "status")]),
    listed.map((hash) => [hash, "0x1"]),
  );
  rig.close();
});

test("a sealed block that is replaced before it is read holds no pending block, and one that is read too late is not sent", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  rig.fail(1);
  await rig.head(11n);
  rig.pending.emit({ extended: [extension(createPendingBlock(12n, 1, [transaction("one")]), 0)] });
  assert.deepEqual(blocks(), [], "the pending block waits");
  rig.results.set(`eth_getBlockByHash ${hashOf(11n, 1)}`, { ...sealedBlock(11n), hash: hashOf(11n, 1) });
  await rig.head(11n, { fork: 1, from: 1 });
  await rig.sentCount(2);
  assert.deepEqual(numbersOf(blocks()), [11, 12]);
  const release = rig.hold(`eth_getBlockByHash ${hashOf(13n, 1)}`);
  rig.results.set(`eth_getBlockByHash ${hashOf(12n, 1)}`, sealedBlock(12n));
  rig.results.set(`eth_getBlockByHash ${hashOf(13n, 1)}`, sealedBlock(13n));
  await rig.head(12n, { fork: 1 });
  await rig.head(13n, { fork: 1 });
  const names = Array.from({ length: 65 }, (_, at) => transaction(`late${at}`));
  for (let count = 1; count <= names.length; count++) {
    rig.pending.emit({ extended: [extension(createPendingBlock(14n, count, names.slice(0, count)), count - 1)] });
  }
  assert.equal(blocks().length, 67);
  release();
  await turn();
  await turn();
  assert.deepEqual(numbersOf(blocks()).slice(-2), [14, 14]);
  assert.equal(blocks().length, 67);
  rig.close();
});

test("in native mode sealed blocks feed the same subscriptions", async () => {
  const rig = createRig();
  const blocks = await rig.subscribe("newFlashblocks");
  const hashes = await rig.subscribe("newFlashblockTransactions", false);
  const whole = await rig.subscribe("newFlashblockTransactions", true);
  const logs = await rig.subscribe("pendingLogs");
  const log = rpcLog(11n, hashOf(11n), "one", 0);
  const block = { ...sealedBlock(11n), transactions: [{ hash: hashOfName("one"), value: "0x1" }] };
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, block);
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [log]);
  rig.results.set(`eth_getBlockReceipts ${hashOf(11n)}`, [
    { transactionHash: hashOfName("one"), status: "0x1", logs: [log] },
  ]);
  await rig.head(11n);
  await turn();
  assert.deepEqual(blocks(), [block]);
  assert.deepEqual(hashes(), [hashOfName("one")]);
  assert.deepEqual(whole(), [{ hash: hashOfName("one"), value: "0x1", logs: [log], status: "0x1" }]);
  assert.deepEqual(names(logs()), ["one"]);
  rig.close();
});

test("a node's pending block is polled while there are subscriptions, and the sealed block sends only the rest", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const rig = createRig();
  const look = async () => {
    context.mock.timers.tick(200);
    await turn();
  };
  await look();
  assert.deepEqual(rig.asked, []);
  const logs = await rig.subscribe("pendingLogs");
  const hashes = await rig.subscribe("newFlashblockTransactions");
  const blocks = await rig.subscribe("newFlashblocks");
  const log = (name: string, index: number) => rpcLog(11n, hashOf(11n), name, index);
  const block = (...named: string[]) => ({
    number: "0xb",
    transactions: named.map((name) => ({ hash: hashOfName(name) })),
  });
  rig.results.set("eth_getLogs [object Object]", [log("one", 0)]);
  rig.results.set("eth_getBlockByNumber pending", block("one"));
  await look();
  await look();
  rig.results.set("eth_getLogs [object Object]", [log("one", 0), log("two", 1)]);
  rig.results.set("eth_getBlockByNumber pending", block("one", "two"));
  await look();
  assert.deepEqual(names(logs()), ["one", "two"]);
  assert.deepEqual(hashes(), [hashOfName("one"), hashOfName("two")]);
  assert.equal(blocks().length, 2);
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [log("one", 0), log("three", 1)]);
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, block("one", "three"));
  await rig.head(11n);
  assert.deepEqual(names(logs()), ["one", "two", "-two", "three"]);
  assert.deepEqual(hashes(), [hashOfName("one"), hashOfName("two"), hashOfName("three")]);
  // A block that is not above the head is not pending.
  await look();
  assert.equal(blocks().length, 2);
  rig.close();
});
