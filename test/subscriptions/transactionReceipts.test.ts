import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { hashOf } from "../support/builders/heads.ts";
import { hashOfName } from "../support/builders/pendingBlock.ts";
import { createRig } from "./eventRig.ts";

const receipt = (blockHash: Hash, name: string) => ({ transactionHash: hashOfName(name), blockHash, status: "0x1" });

type Rig = ReturnType<typeof createRig>;

/** Sets a block with these transactions, and its receipts. */
const seal = ({ results }: Rig, number: bigint, names: readonly string[], fork = 0): void => {
  const hash = hashOf(number, fork);
  const transactions = names.map((name) => ({ hash: hashOfName(name) }));
  results.set(`eth_getBlockByHash ${hash}`, { number: `0x${number.toString(16)}`, transactions });
  results.set(
    `eth_getBlockReceipts ${hash}`,
    names.map((name) => receipt(hash, name)),
  );
};

const receiptsOf = (number: bigint, names: readonly string[], fork = 0) =>
  names.map((name) => receipt(hashOf(number, fork), name));

test("transactionReceipts sends each block's receipts as one list, of all transactions or of those that are named", async () => {
  const rig = createRig();
  const all = await rig.subscribe("transactionReceipts");
  const named = await rig.subscribe("transactionReceipts", {
    transactionHashes: [hashOfName("three"), hashOfName("one").toUpperCase().replace("0X", "0x"), hashOfName("one")],
  });
  const none = await rig.subscribe("transactionReceipts", { transactionHashes: [] });
  seal(rig, 11n, ["one", "two", "three"]);
  seal(rig, 12n, []);
  await rig.head(12n);
  await rig.sentCount(3);
  const late = await rig.subscribe("transactionReceipts", null);
  seal(rig, 13n, ["four"]);
  await rig.head(13n);
  await rig.sentCount(6);
  const first = receiptsOf(11n, ["one", "two", "three"]);
  assert.deepEqual(all(), [first, receiptsOf(13n, ["four"])]);
  assert.deepEqual(none(), all());
  assert.deepEqual(named(), [receiptsOf(11n, ["one", "three"])]);
  assert.deepEqual(late(), [receiptsOf(13n, ["four"])]);
  rig.close();
});

test("receipts are read once for all subscriptions, and only of blocks that have a wanted transaction", async () => {
  const rig = createRig();
  const lists = [
    await rig.subscribe("transactionReceipts", { transactionHashes: [hashOfName("one")] }),
    await rig.subscribe("transactionReceipts", { transactionHashes: [hashOfName("two"), hashOfName("one")] }),
  ];
  seal(rig, 11n, ["three"]);
  seal(rig, 12n, ["one"]);
  await rig.head(12n);
  await rig.sentCount(2);
  for (const list of lists) {
    assert.deepEqual(list(), [receiptsOf(12n, ["one"])]);
  }
  assert.deepEqual(rig.asked, [
    `eth_getBlockByHash ${hashOf(11n)}`,
    `eth_getBlockByHash ${hashOf(12n)}`,
    `eth_getBlockReceipts ${hashOf(12n)}`,
  ]);
  rig.close();
});

test("nodes without eth_getBlockReceipts are asked for each wanted receipt", async () => {
  const rig = createRig();
  const named = await rig.subscribe("transactionReceipts", { transactionHashes: [hashOfName("two")] });
  seal(rig, 11n, ["one", "two"]);
  rig.results.set(
    `eth_getBlockReceipts ${hashOf(11n)}`,
    new NodeError("unsupportedMethod", "node", "the method does not exist"),
  );
  rig.results.set(`eth_getTransactionReceipt ${hashOfName("two")}`, receipt(hashOf(11n), "two"));
  await rig.head(11n);
  await rig.sentCount(1);
  assert.deepEqual(named(), [receiptsOf(11n, ["two"])]);
  assert.equal(rig.asked.at(-1), `eth_getTransactionReceipt ${hashOfName("two")}`);
  rig.close();
});

test("transactionReceipts refuses what is no list of hashes, and more than 200 of them", async () => {
  const rig = createRig();
  const hashes = Array.from({ length: 201 }, (_, at) => hashOfName(`${at}`));
  for (const option of [
    true,
    "0x",
    [],
    { transactionHashes: hashOfName("one") },
    { transactionHashes: ["0x1"] },
    { transactionHashes: [null] },
    { transactionHashes: hashes },
  ]) {
    await assert.rejects(rig.subscribe("transactionReceipts", option), { code: -32_602 });
  }
  await rig.subscribe("transactionReceipts", { transactionHashes: hashes.slice(1) });
  await rig.subscribe("transactionReceipts", { transactionHashes: null });
  rig.close();
});

test("an ended transactionReceipts subscription costs no more reads", async () => {
  const rig = createRig();
  await rig.subscribe("transactionReceipts");
  await rig.subscribe("transactionReceipts", { transactionHashes: [hashOfName("one")] });
  rig.endAll();
  seal(rig, 11n, ["one"]);
  await rig.head(11n);
  assert.deepEqual(rig.asked, []);
  rig.close();
});
