import assert from "node:assert/strict";
import { test } from "node:test";
import { RLP } from "@ethereumjs/rlp";
import fc from "fast-check";
import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { type Address, formatData, type Hash } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { createdAddress, encodeReceipt, formatReceipt, type Receipt } from "../../src/ethereum/receipt.ts";
import { encodeDeposit } from "../../src/ethereum/transaction.ts";

const sender: Address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const topic: Hash = `0x${"07".repeat(32)}`;
const logs = [{ address: sender, topics: [topic], data: "0x01" }] as const;
const receipt: Receipt = {
  type: 0x7e,
  status: true,
  cumulativeGasUsed: 50_000n,
  logs,
  logsBloom: bloomOfLogs(logs),
  depositNonce: 6n,
  depositReceiptVersion: 1n,
};

test("the encoding begins with the type, except for legacy", () => {
  assert.equal(encodeReceipt({ ...receipt, type: 2 })[0], 2);
  assert.ok((encodeReceipt({ ...receipt, type: 0 })[0] ?? 0) >= 0xc0);
  // depositNonce 6 and version 1 are the last two bytes.
  assert.equal(formatData(encodeReceipt(receipt).slice(-2)), "0x0601");
});

test("any logs are encoded as the library encodes them", () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  const entry = fc.record({
    address: bytes(20),
    topics: fc.array(bytes(32), { maxLength: 4 }),
    data: fc.oneof(fc.uint8Array({ maxLength: 2 }), fc.uint8Array({ maxLength: 400 }), bytes(70_000)),
  });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 4 }), (entries) => {
      const found = entries.map(({ address, topics, data }) => ({
        address: formatData(address),
        topics: topics.map(formatData),
        data: formatData(data),
      }));
      const theirs = RLP.encode([
        1,
        receipt.cumulativeGasUsed,
        receipt.logsBloom,
        entries.map(({ address, topics, data }) => [address, topics, data]),
      ]);
      assert.deepEqual(encodeReceipt({ ...receipt, type: 0, logs: found }), theirs);
    }),
    { numRuns: 50 },
  );
});

test("a creation has its address, and logs have their place", () => {
  const raw = encodeDeposit({
    sourceHash: topic,
    from: sender,
    to: null,
    mint: 0n,
    value: 0n,
    gas: 100_000n,
    isSystemTx: false,
    input: new Uint8Array(0),
  });
  const transaction = parseTransaction(raw);
  const formatted = formatReceipt(receipt, {
    transaction,
    sender,
    blockHash: topic,
    blockNumber: 16n,
    transactionIndex: 2,
    gasUsed: 40_000n,
    firstLogIndex: 5,
    extra: { l1Fee: "0x0" },
  });
  const where = { blockHash: topic, blockNumber: "0x10", transactionHash: transaction.hash, transactionIndex: "0x2" };
  assert.deepEqual(formatted, {
    ...where,
    from: sender,
    to: null,
    cumulativeGasUsed: "0xc350",
    gasUsed: "0x9c40",
    contractAddress: createdAddress(sender, 6n),
    logs: [{ ...logs[0], ...where, logIndex: "0x5", removed: false }],
    logsBloom: formatData(receipt.logsBloom),
    status: "0x1",
    effectiveGasPrice: "0x0",
    type: "0x7e",
    depositNonce: "0x6",
    depositReceiptVersion: "0x1",
    l1Fee: "0x0",
  });
});

test("the address of a created contract", () => {
  // The dev account's first and second contracts, as anvil creates them.
  assert.equal(createdAddress(sender, 0n), "0x5fbdb2315678afecb367f032d93f642f64180aa3");
  assert.equal(createdAddress(sender, 1n), "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512");
});
