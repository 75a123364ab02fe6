import assert from "node:assert/strict";
import { test } from "node:test";
import { findReceipt } from "../../src/verification/singleReceipt.ts";

const hashOf = (digits: string): string => `0x${digits.repeat(32)}`;
const encode = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const textOf = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString();

const LIST = [
  { transactionHash: hashOf("aa"), type: "0x2", logs: [{ data: hashOf("bb") }] },
  { transactionHash: hashOf("bb"), type: "0x2", logs: [] },
  { transactionHash: hashOf("cc"), type: "0x7e", logs: [] },
];

test("a receipt is found by its own transaction, in any case of digits", () => {
  assert.equal(textOf(findReceipt(encode(LIST), hashOf("BB"))), JSON.stringify(LIST[1]));
  assert.equal(findReceipt(encode(LIST), hashOf("dd")), undefined);
});

test("a deposit and a long list are left to a request for the single receipt", () => {
  assert.equal(findReceipt(encode(LIST), hashOf("cc")), undefined);
  assert.equal(findReceipt(encode([...LIST, { data: "0".repeat(256 * 1024) }]), hashOf("bb")), undefined);
});

test("the copy does not hold the memory of the list", () => {
  const list = encode(LIST);
  const found = findReceipt(list, hashOf("aa"));
  assert.notEqual(found?.buffer, list.buffer);
});
