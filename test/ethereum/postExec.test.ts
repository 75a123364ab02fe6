import assert from "node:assert/strict";
import { test } from "node:test";
import { formatData, parseData } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import {
  encodePostExec,
  formatPostExec,
  POST_EXEC_TYPE,
  parsePostExec,
  parsePostExecInput,
  refundsByIndex,
} from "../../src/ethereum/postExec.ts";
import { InvalidTransaction, UnknownTransactionType } from "../../src/ethereum/transaction.ts";

/** The example of the specification: block 16 gives back 5,000 gas to transaction 1. */
const RAW = "0x7dc80110c5c401821388";
const HASH = "0xfdfa14b3aa56d05b4ad2f41eb952885032d4fa192dba8103fad565b9df640fc7";

test("a post-exec transaction is the type and the list of its payload", () => {
  const refunds = [{ index: 1, gasRefund: 5_000n }];
  assert.equal(formatData(encodePostExec(16n, refunds)), RAW);
  assert.equal(parseData(RAW)[0], POST_EXEC_TYPE);
  const parsed = parsePostExec(parseData(RAW));
  assert.ok(parsed !== undefined);
  assert.deepEqual([parsed.hash, parsed.blockNumber, parsed.refunds], [HASH, 16n, refunds]);
  assert.deepEqual([...refundsByIndex(parsed)], [[1, 5_000n]]);
  assert.deepEqual(parsePostExecInput(parseData("0xc80110c5c401821388")), parsed);
  assert.deepEqual(formatPostExec(parsed, { blockHash: HASH, transactionIndex: 2 }), {
    ...{ blockHash: HASH, blockNumber: "0x10", from: `0x${"00".repeat(20)}`, gas: "0x0", hash: HASH },
    ...{ input: "0xc80110c5c401821388", transactionIndex: "0x2", type: "0x7d", value: "0x0" },
  });
});

test("many refunds, and a long list", () => {
  const refunds = Array.from({ length: 300 }, (_, at) => ({ index: 2 * at, gasRefund: BigInt(at) ** 5n + 1n }));
  assert.deepEqual(parsePostExec(encodePostExec(2n ** 40n, refunds))?.refunds, refunds);
});

for (const [name, raw] of [
  ["another type", "0x7ec80110c5c401821388"],
  ["no payload", "0x7d"],
  ["trailing bytes", `${RAW}00`],
  ["another version", "0x7dc80210c5c401821388"],
  ["no refund", "0x7dc30110c0"],
  ["a refund of zero", "0x7dc60110c3c20180"],
  ["an index twice", "0x7dc90110c6c20105c20106"],
  ["falling indexes", "0x7dc90110c6c20205c20106"],
  ["a leading zero", "0x7dc90110c6c50183001388"],
  ["a byte as a long string", "0x7dc9018110c5c401821388"],
  ["a refund of three numbers", "0x7dc70110c4c3010505"],
  ["a further field", "0x7dc90110c5c40182138805"],
  ["a refund of more than 8 bytes", `0x7dcf0110cccb0189${"11".repeat(9)}`],
] as const) {
  test(`no post-exec transaction: ${name}`, () => assert.equal(parsePostExec(parseData(raw)), undefined));
}

test("a type that cannot be read is told apart from bytes that are no transaction", () => {
  for (const raw of ["0x7bc101", RAW, "0x7f"] as const) {
    assert.throws(() => parseTransaction(parseData(raw)), {
      name: "UnknownTransactionType",
      type: Number(raw.slice(0, 4)),
    });
  }
  for (const raw of ["0x", "0x80", "0xbf01", "0x02c101"] as const) {
    assert.throws(
      () => parseTransaction(parseData(raw)),
      (error) => error instanceof InvalidTransaction && !(error instanceof UnknownTransactionType),
    );
  }
});
