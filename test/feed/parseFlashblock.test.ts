import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { parseFlashblock } from "../../src/feed/parseFlashblock.ts";
import { hashOf, wireMessage } from "../support/builders/flashblocks.ts";

const parse = (value: unknown): FeedMessage => {
  const parsed = parseFlashblock(JSON.stringify(value));
  if (!("message" in parsed)) {
    throw new Error(JSON.stringify(parsed));
  }
  return parsed.message;
};
const MALFORMED = { refused: "malformed" };
const refusalOf = (value: unknown) => parseFlashblock(JSON.stringify(value));

const receipt = {
  status: "0x1",
  cumulativeGasUsed: "0x5208",
  logs: [{ address: `0x${"AA".repeat(20)}`, topics: [hashOf(9)], data: "0x01" }],
};
const withReceipt = (body: unknown) =>
  parse(wireMessage(1, { metadata: { block_number: 101, receipts: { [hashOf(5)]: body } } }));

test("base is read at index 0 and ignored later", () => {
  const first = parse(wireMessage(0));
  assert.equal(first.environment?.number, 101n);
  assert.equal(first.environment?.parentHash, hashOf(100));
  assert.equal(parse({ ...wireMessage(1), base: null }).environment, undefined);
  assert.equal(parse({ ...wireMessage(1), base: { wrong: true } }).environment, undefined);
  assert.deepEqual(refusalOf({ ...wireMessage(0), base: null }), MALFORMED);
});

test("receipts of every metadata version mean the same", () => {
  const expected = {
    status: true,
    cumulativeGasUsed: 21_000n,
    logs: [{ address: `0x${"aa".repeat(20)}`, topics: [hashOf(9)], data: "0x01" }],
    depositNonce: undefined,
  };
  for (const body of [
    { Eip1559: receipt },
    { Legacy: receipt },
    { ...receipt, type: "0x2" },
    { ...receipt, type: "0x2", status: true },
    { ...receipt, unknown: [1] },
  ]) {
    assert.deepEqual(withReceipt(body).receipts?.get(hashOf(5)), expected);
  }
  assert.equal(
    withReceipt({ Deposit: { ...receipt, depositNonce: "0x7" } }).receipts?.get(hashOf(5))?.depositNonce,
    7n,
  );
  assert.equal(withReceipt({ ...receipt, status: false }).receipts?.get(hashOf(5))?.status, false);
  assert.equal(withReceipt({ ...receipt, status: "0x0" }).receipts?.get(hashOf(5))?.status, false);
});

test("metadata without receipts, without a number, or not there at all", () => {
  assert.equal(parse(wireMessage(1, { metadata: { block_number: 5, access_list: null } })).receipts, undefined);
  const worldChain = parse(wireMessage(1, { metadata: { fees: "0x1", flashblock_timestamp: 17 } }));
  assert.equal(worldChain.number, undefined);
  assert.equal(parse({ ...wireMessage(1), metadata: undefined }).receipts, undefined);
  assert.equal(parse({ ...wireMessage(1), metadata: null }).number, undefined);
});

test("receipts of an unknown format are ignored", () => {
  assert.equal(withReceipt({ status: "yes" }).receipts, undefined);
  assert.equal(withReceipt({ ...receipt, status: hashOf(5) }).receipts, undefined, "a state root");
  assert.equal(parse(wireMessage(1, { metadata: { receipts: [] } })).receipts, undefined);
});

test("the predecessor is parsed, and 0-0 means none", () => {
  const previous = (value: unknown) => parse(wireMessage(1, { metadata: { prev_flashblock_id: value } })).previous;
  assert.deepEqual(previous("100-10"), { number: 100n, index: 10 });
  assert.equal(previous("0-0"), undefined);
  assert.equal(previous(7), undefined);
});

test("Subblocks: zero hashes and a transaction that ends the block", () => {
  const message = wireMessage(1);
  const diff = {
    ...(message.diff as object),
    post_exec_tx: "0x7d01",
    blob_gas_used: undefined,
    withdrawals_root: undefined,
  };
  const parsed = parse({ ...message, diff });
  assert.equal(parsed.closingTransaction, "0x7d01");
  assert.equal(parsed.commitments.blobGasUsed, undefined);
  assert.equal(parsed.commitments.withdrawalsRoot, hashOf(0));
});

test("a message in an envelope is parsed", () => {
  assert.equal(parse({ payload: wireMessage(3), target_index: 10 }).index, 3);
  assert.equal(parse({ OpFlashblockPayload: { ...wireMessage(2), target_index: 10 } }).index, 2);
  assert.equal(parse({ ...wireMessage(4), target_index: 10 }).index, 4);
  assert.equal(parse({ OpFlashblockPayload: { ...wireMessage(0), target_index: 0 } }).environment?.number, 101n);
});

test("the end of a payload is ignored without a fault", () => {
  const end = { payload_id: "0x0000000000000065" };
  for (const value of [end, { OpFlashblockPayload: end }, { OpFlashblockPayloadEnd: end }, { PayloadEnd: end }]) {
    assert.deepEqual(refusalOf(value), { refused: "payloadEnd" });
  }
  assert.deepEqual(refusalOf({ payload_id: "0x65" }), MALFORMED);
  assert.deepEqual(refusalOf({ ...end, index: 1 }), MALFORMED);
});

test("malformed messages are refused", () => {
  assert.deepEqual(parseFlashblock("{"), MALFORMED);
  for (const value of [
    null,
    7,
    [],
    {},
    { ...wireMessage(1), index: -1 },
    { ...wireMessage(1), index: 1.5 },
    { ...wireMessage(1), payload_id: "0x1" },
  ]) {
    assert.deepEqual(refusalOf(value), MALFORMED);
  }
  const diff = wireMessage(1).diff as Record<string, unknown>;
  for (const wrong of [
    { gas_used: "12" },
    { logs_bloom: "0x00" },
    { transactions: ["0x1"] },
    { transactions: null },
    { block_hash: "0x" },
    { gas_used: `0x${"f".repeat(65)}` },
  ]) {
    assert.deepEqual(refusalOf({ ...wireMessage(1), diff: { ...diff, ...wrong } }), MALFORMED);
  }
});

test("no text makes the parser throw", () => {
  fc.assert(fc.property(fc.oneof(fc.json(), fc.string()), (text) => void parseFlashblock(text)));
  const paths = ["payload_id", "index", "base", "diff", "metadata"];
  fc.assert(
    fc.property(
      fc.constantFrom(...paths),
      fc.jsonValue(),
      (path, value) => void parseFlashblock(JSON.stringify({ ...wireMessage(0), [path]: value })),
    ),
  );
});

test("a list inside many objects does not make the parser throw", () => {
  const depth = 100_000;
  const nested = `${'{"access_list":'.repeat(depth)}[]${"}".repeat(depth)}`;
  const text = JSON.stringify(wireMessage(1, { metadata: { access_list: "nested" } })).replace('"nested"', nested);
  assert.ok("message" in parseFlashblock(text));
});

test("access lists of three chains return the same accounts and slots, and other formats are ignored", () => {
  const address = `0x${"ab".repeat(20)}`;
  const slot = (number: number) => `0x${number.toString(16).padStart(64, "0")}`;
  const camel = [{ address, storageChanges: [{ key: slot(1), changes: [] }], storageReads: [slot(2)] }];
  const snake = [{ address, storage_changes: [{ slot: "0x1", changes: [] }], storage_reads: [slot(2)] }];
  const expected = [{ address, slots: [slot(1), slot(2)] }];
  const message = wireMessage(1);
  const listOf = (metadata: unknown, diff: object = {}) =>
    parse({ ...message, metadata, diff: { ...(message.diff as object), ...diff } }).accessList;
  assert.deepEqual(listOf({ access_list: camel }), expected);
  assert.deepEqual(listOf({ flashblock_access_list: { min_tx_index: 0, account_changes: snake } }), expected);
  assert.deepEqual(listOf({}, { access_list_data: { access_list: camel } }), expected);
  for (const access_list of [null, "none", [{ address: "0x1" }], { account_changes: 7 }]) {
    assert.deepEqual(listOf({ access_list }), []);
  }
});
