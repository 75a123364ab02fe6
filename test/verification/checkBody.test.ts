import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { formatData, type Hash, parseData, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import { concatBytes, encodeList } from "../../src/ethereum/rlp.ts";
import { checkBody, isJson, type ResponseChecks } from "../../src/verification/checkBody.ts";
import { createTypedChain } from "../support/builders/typedBlocks.ts";

const EMPTY_ROOT = orderedTrieRoot([]);
const header = {
  ...({
    parentHash: ZERO_HASH,
    miner: ZERO_ADDRESS,
    stateRoot: ZERO_HASH,
    mixHash: ZERO_HASH,
    extraData: "0x",
  } as const),
  ...{ transactionsRoot: EMPTY_ROOT, receiptsRoot: EMPTY_ROOT, logsBloom: createBloom() },
  ...{ number: 5n, gasLimit: 30_000_000n, gasUsed: 0n, timestamp: 1_700_000_000n },
};
const london = { ...header, baseFeePerGas: 7n };
const cancun = {
  ...{ ...london, withdrawalsRoot: EMPTY_ROOT, blobGasUsed: 0n, excessBlobGas: 0n },
  parentBeaconBlockRoot: ZERO_HASH,
};
const forks = { header, london, cancun, prague: { ...cancun, requestsHash: `0x${"11".repeat(32)}` as Hash } };

const find = (value: unknown, checks: ResponseChecks) => checkBody(Buffer.from(JSON.stringify(value)), checks);
const BLOCK: ResponseChecks = { kind: "block", location: {}, checksHashes: true };
const outcomes = (value: unknown) => find(value, BLOCK).map(({ check, outcome }) => `${check} ${outcome}`);

for (const [name, fields] of Object.entries(forks)) {
  test(`the header hash of ${name}`, () => {
    const block = formatHeader(fields, hashHeader(fields));
    assert.deepEqual(outcomes(block), ["block passed", "header passed"]);
    for (const field of Object.keys(block)) {
      const { [field]: value = "", ...rest } = block;
      const last = value.endsWith("1") ? "2" : "1";
      assert.deepEqual(
        outcomes({ ...rest, [field]: value.slice(0, -1) + last }),
        ["block passed", "header failed"],
        field,
      );
      assert.deepEqual(outcomes(rest), ["block passed", "header failed"], `without ${field}`);
    }
  });
}

test("a block without its list of transactions is wrong, and a header has none", () => {
  const block = formatHeader(london, hashHeader(london));
  const checks: ResponseChecks = { kind: "block", location: {}, checksHashes: false, transactions: "hashes" };
  const outcomesOf = (value: unknown) => find(value, checks).map(({ check, outcome }) => `${check} ${outcome}`);
  assert.deepEqual(outcomesOf(block), ["block failed"]);
  assert.deepEqual(outcomesOf({ ...block, transactions: null }), ["block failed"]);
  assert.deepEqual(outcomesOf({ ...block, transactions: [] }), ["block passed"]);
});

test("an unknown header field makes a wrong hash uncomputable, and leaves a right one right", () => {
  const block = { ...formatHeader(london, hashHeader(london)), newRoot: ZERO_HASH };
  assert.deepEqual(outcomes(block), ["block passed", "header passed"]);
  assert.deepEqual(outcomes({ ...block, gasUsed: "0x1" }), ["block passed", "header uncomputable"]);
  assert.deepEqual(outcomes({ ...block, gasUsed: "0x1", newRoot: null }), ["block passed", "header failed"]);
});

test("a transaction of an unknown type is checked in part", () => {
  const checks: ResponseChecks = { kind: "transaction", location: {}, checksHashes: true };
  assert.deepEqual(find({ type: "0x55", hash: ZERO_HASH }, checks).at(-1), {
    check: "transactions",
    outcome: "partial",
    unknown: [{ index: 0, type: 0x55, hash: ZERO_HASH }],
  });
});

test("the root covers which transactions a block has, and their order", () => {
  const { full } = createTypedChain({ chainId: 1, height: 1, types: [2, 0, 2] }).blocks[1] ?? assert.fail();
  const checks: ResponseChecks = { kind: "block", location: {}, transactions: "full", checksHashes: true };
  const outcomeOf = (list: readonly object[]) => {
    const transactions = list.map((each, index) => ({ ...each, transactionIndex: `0x${index}` }));
    return find({ ...full, transactions }, checks).find(({ check }) => check === "transactions")?.outcome;
  };
  const all = full.transactions;
  assert.equal(outcomeOf(all), "passed");
  for (const list of [all.slice(0, -1), all.slice(1), all.toReversed(), [...all, ...all.slice(0, 1)]]) {
    assert.equal(outcomeOf(list), "failed");
  }
});

test("null is no answer that could be wrong; another kind of value is", () => {
  assert.deepEqual(outcomes(null), []);
  for (const value of ["0x1", 7, [], true]) {
    assert.deepEqual(outcomes(value), ["block failed"]);
  }
});

test("JSON is read to its end, at any depth", () => {
  const deep = `${"[".repeat(300)}${"]".repeat(300)}`;
  for (const text of ['"0x"', " 1 ", "null", '{"a":[1,{}]}', deep]) {
    assert.ok(isJson(Buffer.from(text)), text);
  }
  for (const text of ["", "0x1", '"\n"', '"a', "{}}", "[1,]", "nul", deep.slice(1)]) {
    assert.ok(!isJson(Buffer.from(text)), text);
  }
  assert.ok(!isJson(Buffer.from([0x22, 0xff, 0x22])));
});

test("a receipt whose type is above 0x7f is wrong, although its lowest byte is the type that the root covers", () => {
  const receipt = { type: 2, status: true, cumulativeGasUsed: 21_000n, logs: [], logsBloom: createBloom() };
  const receiptsRoot = orderedTrieRoot([encodeReceipt(receipt)]);
  const logsBloom = formatData(createBloom());
  const fields = {
    ...{ type: "0x2", status: "0x1", cumulativeGasUsed: "0x5208", gasUsed: "0x5208", logs: [], logsBloom },
    ...{ blockHash: ZERO_HASH, blockNumber: "0x5", transactionHash: ZERO_HASH, transactionIndex: "0x0" },
  };
  const blockHeader = { hash: ZERO_HASH, number: 5n, receiptsRoot, logsBloom, isComputed: true };
  const outcomeOf = (value: unknown) => find([value], { kind: "receipts", location: {}, header: blockHeader }).at(-1);
  assert.equal(outcomeOf(fields)?.outcome, "passed");
  for (const type of ["0x102", "0x82", "0x10000000000000002"]) {
    assert.deepEqual(outcomeOf({ ...fields, type }), { check: "receipts", outcome: "failed" }, type);
  }
});

test("checks without a computed root are no evidence of an encoding: an empty list, a receipt's bloom, raw bytes", () => {
  const header = {
    hash: ZERO_HASH,
    number: 5n,
    receiptsRoot: EMPTY_ROOT,
    logsBloom: `0x${"00".repeat(256)}`,
    isComputed: true,
  };
  assert.deepEqual(find([], { kind: "receipts", location: {}, header }), [{ check: "block", outcome: "passed" }]);
  assert.deepEqual(
    find([], { kind: "receipts", location: {}, header: { ...header, receiptsRoot: ZERO_HASH } }).at(-1),
    {
      check: "receipts",
      outcome: "failed",
    },
  );
  assert.deepEqual(find("0x01", { kind: "raw", hash: ZERO_HASH }), [{ check: "transaction", outcome: "failed" }]);
});

test("the bytes of a blob transaction have its hash, also with its blobs, as a node's pool has them", async () => {
  const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
  const blobHash: Hash = `0x01${"0f".repeat(31)}`;
  const fees = { maxFeePerGas: 30n, maxPriorityFeePerGas: 2n, maxFeePerBlobGas: 3n, gas: 21_000n };
  const call = {
    type: "eip4844",
    chainId: 1,
    to: ZERO_ADDRESS,
    blobVersionedHashes: [blobHash],
    sidecars: false,
  } as const;
  const raw = parseData(await account.signTransaction({ ...call, ...fees }));
  const none = encodeList([]);
  const withBlobs = concatBytes([raw.subarray(0, 1), encodeList([raw.subarray(1), none, none, none])]);
  for (const bytes of [raw, withBlobs].map(formatData)) {
    const outcomeOf = (hash: Hash) => find(bytes, { kind: "raw", hash }).map(({ outcome }) => outcome);
    assert.deepEqual(outcomeOf(keccak256Hex(raw)), ["passed"]);
    assert.deepEqual(outcomeOf(ZERO_HASH), ["failed"]);
  }
});
