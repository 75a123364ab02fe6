import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { formatData, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { parseL1Attributes } from "../../src/ethereum/opFees.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { TransactionFields } from "../../src/pending/nodeTransactionFields.ts";
import { opReceiptExtra } from "../../src/pending/transactionFormatter.ts";
import { encodeL1Attributes } from "../devnet/l1Attributes.ts";
import { flashblock, hashOf } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";

const CHAIN_ID = 196;
const account = privateKeyToAccount(`0x${"22".repeat(32)}`);
const sign = (nonce: number) =>
  account.signTransaction({
    chainId: CHAIN_ID,
    type: "eip1559",
    nonce,
    to: account.address,
    data: `0x${"ab".repeat(300)}`,
    gas: 50_000n,
    maxFeePerGas: 10n ** 9n,
    maxPriorityFeePerGas: 1n,
  });
const DEPOSIT = encodeL1Attributes(101n, 1_700_000_202n);
const [FIRST, SECOND] = await Promise.all([sign(0), sign(1)]);

const hash = (raw: `0x${string}`): Hash => keccak256Hex(parseData(raw));
const decode = (body: Uint8Array | undefined) => body && JSON.parse(new TextDecoder().decode(body));
const LOG = { address: `0x${"aa".repeat(20)}`, topics: [hashOf(9)], data: "0x" };
const receiptsOf = (...receipts: readonly (readonly [`0x${string}`, number])[]) => ({
  block_number: 101,
  receipts: Object.fromEntries(
    receipts.map(([raw, gas]) => [
      hash(raw),
      { type: "0x2", status: "0x1", cumulativeGasUsed: `0x${gas.toString(16)}`, logs: [LOG] },
    ]),
  ),
});
const deposit = formatData(DEPOSIT);

/** Applies messages without execution. The receipts are those of the metadata. */
const createUnexecuted = (t: TestContext) => {
  const rig = createRig(t);
  for (const index of [0, 1]) {
    rig.fake.say(`101-${index}`, { unverified: "unexecutable" });
  }
  return rig;
};

test("a receipt of the metadata has the L1 fields that follow from the deposit at index 0; a deposit has none", async (t) => {
  const rig = createUnexecuted(t);
  const metadata = receiptsOf([deposit, 40_000], [FIRST, 70_000]);
  await rig.send(
    flashblock(0, { transactions: [deposit, FIRST], metadata }),
    flashblock(1, { transactions: [SECOND], metadata: receiptsOf([SECOND, 100_000]) }),
  );
  const [ofDeposit, ...others] = decode(rig.view().newest?.receipts());
  assert.equal(ofDeposit.type, "0x7e");
  assert.equal("l1Fee" in ofDeposit, false);
  const attributes = parseL1Attributes(parseTransaction(DEPOSIT).input);
  for (const [at, raw] of [FIRST, SECOND].entries()) {
    const rules = { chainId: BigInt(CHAIN_ID), fork: "prague", op: "jovian" } as const;
    const expected = opReceiptExtra(rules, attributes, parseData(raw));
    assert.ok(BigInt(expected.l1Fee ?? 0) > 0n && expected.operatorFeeScalar && expected.daFootprintGasScalar);
    assert.deepEqual({ ...others[at], ...expected }, others[at]);
    assert.equal(others[at].transactionHash, hash(raw));
  }
});

test("without L1 attributes at index 0, receipts have no L1 fields", async (t) => {
  const rig = createUnexecuted(t);
  await rig.send(flashblock(0, { transactions: [FIRST], metadata: receiptsOf([FIRST, 30_000]) }));
  const receipt = decode(rig.view().newest?.receipt(0));
  assert.equal(receipt.gasUsed, "0x7530");
  assert.equal("l1Fee" in receipt, false);
});

test("the gas of a transaction follows from the receipts before it, not from a wrong amount of a message", async (t) => {
  const rig = createUnexecuted(t);
  await rig.send(
    flashblock(0, { transactions: [FIRST], metadata: receiptsOf([FIRST, 30_000]), gasUsed: 1n }),
    flashblock(1, { transactions: [SECOND], metadata: receiptsOf([SECOND, 60_000]) }),
  );
  assert.equal(decode(rig.view().newest?.receipt(1)).gasUsed, "0x7530");
});

test("the first transaction of a block has all of its gas, whatever amount an empty message before it names", async (t) => {
  const rig = createUnexecuted(t);
  await rig.send(
    flashblock(0, { gasUsed: 1n }),
    flashblock(1, { transactions: [FIRST], metadata: receiptsOf([FIRST, 30_000]) }),
  );
  assert.equal(decode(rig.view().newest?.receipt(0)).gasUsed, "0x7530");
});

test("incomplete receipts of a message are ignored, and later messages of the block have no receipts", async (t) => {
  const rig = createUnexecuted(t);
  await rig.send(flashblock(0, { transactions: [deposit, FIRST], metadata: receiptsOf([FIRST, 70_000]) }));
  assert.equal(rig.view().newest?.receipt(1), undefined);
  assert.deepEqual(rig.view().newest?.logs(), []);
  await rig.send(flashblock(1, { transactions: [SECOND], metadata: receiptsOf([SECOND, 100_000]) }));
  assert.equal(rig.view().newest?.receipt(2), undefined);
  assert.equal(rig.view().newest?.receipts(), undefined);
  assert.deepEqual(rig.view().newest?.logs(), []);
  assert.equal(rig.view().newest?.transactionHashes.length, 3);
});

/** The rig's first head has no transaction, the next one has. */
const LOOKS_UNTIL_SEEN = 2;

const shapeOf = async (t: TestContext, sealed: unknown, receipt: unknown = null) => {
  const rig = createRig(t);
  rig.answers.set("eth_getTransactionByBlockHashAndIndex", sealed);
  rig.answers.set("eth_getTransactionReceipt", receipt);
  for (const number of [101n, 102n, 103n]) {
    // The previous block was requested.
    await rig.send();
    rig.heads.move({ number });
  }
  await rig.send(flashblock(0, { number: 104n, transactions: [deposit, FIRST], timestamp: 1_700_000_208n }));
  const newest = rig.view().newest;
  assert.equal(newest?.number, 104n);
  const looked = rig.asked.filter((method) => method === "eth_getTransactionByBlockHashAndIndex").length;
  const receipts = decode(newest?.receipts());
  return { inBlock: decode(newest?.body(true)).transactions, alone: decode(newest?.transaction(1)), looked, receipts };
};

const L1_FIELDS = ["l1Fee", "l1GasUsed", "l1GasPrice", "operatorFeeScalar", "blobGasUsed", "daFootprintGasScalar"];

test("deposits have the optional fields that the node's deposits have", async (t) => {
  const none = Object.fromEntries(L1_FIELDS.map((name) => [name, "0x1"]));
  const like = await shapeOf(t, { hash: hashOf(1), type: "0x7e", yParity: "0x0" }, { type: "0x7e", ...none });
  assert.equal(like.inBlock[0].yParity, "0x0");
  const [ofDeposit, other] = like.receipts;
  assert.deepEqual(
    L1_FIELDS.filter((name) => name in ofDeposit),
    L1_FIELDS,
  );
  assert.equal(ofDeposit.l1Fee, "0x0", "a deposit does not pay it");
  assert.equal(ofDeposit.l1GasPrice, other.l1GasPrice ?? ofDeposit.l1GasPrice);
  assert.equal("l1BaseFeeScalar" in ofDeposit, false, "the node's receipt does not have it");
});

test("deposits have no optional fields if the node's have none", async (t) => {
  const without = await shapeOf(t, { hash: hashOf(1), type: "0x7e" }, { type: "0x7e", depositNonce: "0x1" });
  assert.equal("yParity" in without.inBlock[0], false);
  assert.deepEqual(
    L1_FIELDS.filter((name) => name in without.receipts[0]),
    [],
  );
});

test("transactions have blockTimestamp if the node's transactions have it, which is read once", async (t) => {
  const { inBlock, alone, looked } = await shapeOf(t, { hash: hashOf(1), blockTimestamp: "0x65" });
  for (const transaction of [...inBlock, alone]) {
    assert.equal(transaction.blockTimestamp, "0x6553f1d0");
  }
  assert.equal(inBlock.length, 2);
  assert.equal(looked, LOOKS_UNTIL_SEEN);
});

test("transactions have no blockTimestamp if the node's have none, or if none was read", async (t) => {
  const without = await shapeOf(t, { hash: hashOf(1) });
  for (const transaction of without.inBlock) {
    assert.equal("blockTimestamp" in transaction, false);
  }
  assert.equal(without.looked, LOOKS_UNTIL_SEEN);
});

test("after an empty block the transaction fields are read from the next block, and then less and less often", async (t) => {
  const { alone, looked } = await shapeOf(t, null);
  assert.equal("blockTimestamp" in alone, false);
  assert.equal(looked, LOOKS_UNTIL_SEEN);

  let nowMs = 0;
  let reads = 0;
  const fields = new TransactionFields(
    async () => {
      reads++;
      return null;
    },
    () => nowMs,
  );
  for (; nowMs < 600_000; nowMs += 200) {
    await fields.refresh(hashOf(1));
  }
  assert.ok(reads > 10 && reads < 20, `${reads} reads in ten minutes`);
});
