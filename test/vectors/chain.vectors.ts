import assert from "node:assert/strict";
import { test } from "node:test";
import { type BlockHeader, blockSize, formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { bloomOfLogs, createBloom, orBloom } from "../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../src/ethereum/formatTransaction.ts";
import { type Address, type Data, formatData, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { encodeReceipt, type LogEntry, type Receipt } from "../../src/ethereum/receipt.ts";
import { readJson, readJsonLines } from "./vectorFolder.ts";

interface FeedBase {
  parent_beacon_block_root: Hash;
  parent_hash: Hash;
  fee_recipient: Address;
  prev_randao: Hash;
  block_number: Data;
  gas_limit: Data;
  timestamp: Data;
  extra_data: Data;
  base_fee_per_gas: Data;
}
interface FeedReceipt {
  cumulativeGasUsed: Data;
  status: Data;
  logs: LogEntry[];
  type: Data;
  depositNonce?: Data;
  depositReceiptVersion?: Data;
}
interface FeedMessage {
  base?: FeedBase;
  diff: {
    state_root: Hash;
    receipts_root: Hash;
    logs_bloom: Data;
    gas_used: Data;
    block_hash: Hash;
    transactions: Data[];
    withdrawals_root: Hash;
    blob_gas_used?: Data;
  };
  metadata: { receipts?: Record<Hash, Record<string, FeedReceipt>> };
}

const TYPES: Record<string, number> = { Legacy: 0, Eip2930: 1, Eip1559: 2, Eip7702: 4, Deposit: 0x7e };

const headerOf = (base: FeedBase, diff: FeedMessage["diff"], transactions: readonly Uint8Array[]): BlockHeader => ({
  parentHash: base.parent_hash,
  miner: base.fee_recipient,
  stateRoot: diff.state_root,
  transactionsRoot: orderedTrieRoot(transactions),
  receiptsRoot: diff.receipts_root,
  logsBloom: parseData(diff.logs_bloom),
  number: BigInt(base.block_number),
  gasLimit: BigInt(base.gas_limit),
  gasUsed: BigInt(diff.gas_used),
  timestamp: BigInt(base.timestamp),
  extraData: base.extra_data,
  mixHash: base.prev_randao,
  baseFeePerGas: BigInt(base.base_fee_per_gas),
  withdrawalsRoot: diff.withdrawals_root,
  blobGasUsed: BigInt(diff.blob_gas_used ?? "0x0"),
  excessBlobGas: 0n,
  parentBeaconBlockRoot: base.parent_beacon_block_root,
  requestsHash: "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
});

const receiptOf = (type: number, receipt: FeedReceipt): Receipt => ({
  type,
  status: receipt.status === "0x1",
  cumulativeGasUsed: BigInt(receipt.cumulativeGasUsed),
  logs: receipt.logs,
  logsBloom: bloomOfLogs(receipt.logs),
  ...(receipt.depositNonce === undefined ? {} : { depositNonce: BigInt(receipt.depositNonce) }),
  ...(receipt.depositReceiptVersion === undefined ? {} : { depositReceiptVersion: 1n }),
});

const baseOf = (messages: readonly FeedMessage[]): FeedBase => {
  const base = messages[0]?.base;
  assert.ok(base);
  return base;
};

test("unichain: header, roots and bloom of all five messages are rebuilt, the last is the sealed block", () => {
  const messages = readJsonLines("flashblocks/unichain-sepolia-35535698.flashblocks.jsonl") as FeedMessage[];
  const sealed = readJson("flashblocks/unichain-sepolia-35535698.sealed-block.json") as {
    transactions: ({ from: Address } & Record<string, unknown>)[];
  } & Record<string, unknown>;
  const base = baseOf(messages);
  const raws: Uint8Array[] = [];
  const receipts: Uint8Array[] = [];
  const bloom = createBloom();
  messages.forEach(({ diff, metadata }, index) => {
    for (const raw of diff.transactions) {
      const transaction = parseTransaction(parseData(raw));
      const [tagged] = Object.entries(metadata.receipts?.[transaction.hash] ?? {});
      assert.ok(tagged);
      assert.equal(TYPES[tagged[0]], transaction.type);
      const receipt = receiptOf(transaction.type, tagged[1]);
      raws.push(transaction.raw);
      receipts.push(encodeReceipt(receipt));
      orBloom(bloom, receipt.logsBloom);
    }
    assert.equal(orderedTrieRoot(receipts), diff.receipts_root, `receipts root at ${index}`);
    assert.equal(formatData(bloom), diff.logs_bloom, `bloom at ${index}`);
    assert.equal(hashHeader(headerOf(base, diff, raws)), diff.block_hash, `hash at ${index}`);
  });
  const last = messages.at(-1);
  assert.ok(last);
  const header = headerOf(base, last.diff, raws);
  const { transactions, uncles, withdrawals, size, ...fields } = sealed;
  assert.deepEqual(formatHeader(header, hashHeader(header)), fields);
  assert.equal(blockSize(header, raws), size);
  assert.deepEqual([uncles, withdrawals], [[], []]);
  const formatted = raws.map((raw, transactionIndex) =>
    formatTransaction(parseTransaction(raw), {
      sender: transactions[transactionIndex]?.from ?? "0x",
      blockHash: hashHeader(header),
      blockNumber: header.number,
      transactionIndex,
      baseFee: 0x33n,
      depositNonce: 0x21e3b52n,
      depositReceiptVersion: 1n,
    }),
  );
  assert.deepEqual(formatted, transactions);
});

test("base sepolia: the header of index 0", () => {
  const messages = readJsonLines("flashblocks/base-sepolia-33439826.flashblocks.jsonl") as FeedMessage[];
  const [first] = messages;
  assert.ok(first);
  const raws = first.diff.transactions.map(parseData);
  assert.equal(hashHeader(headerOf(baseOf(messages), first.diff, raws)), first.diff.block_hash);
});

test("base mainnet: the receipts root of 202 receipts", () => {
  const receipts = readJson("flashblocks/base-mainnet-42969982.receipts.json") as FeedReceipt[];
  const encoded = receipts.map((receipt) => encodeReceipt(receiptOf(Number(receipt.type), receipt)));
  assert.equal(encoded.length, 202);
  assert.equal(orderedTrieRoot(encoded), "0x0381a86904da6c6fa3def4c47be5e63e3a88eff6eb96131995ad174426a20062");
});
