import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/chain/heads.ts";
import { type Hash, parseData } from "../../src/chain/hex.ts";
import { orderedTrieRoot } from "../../src/chain/orderedTrie.ts";
import { encodeReceipt } from "../../src/chain/receipt.ts";
import type { Rules } from "../../src/chain/rules.ts";
import type { Body } from "../../src/chain/view.ts";
import { type Flashblock, parseMessage } from "../../src/feed/message.ts";
import { type Decision, emptySequence, receive } from "../../src/feed/sequence.ts";
import { decodeOnly } from "../../src/pending/decode.ts";
import { fastLzLength } from "../../src/pending/fastLz.ts";
import { fold, type PendingChain } from "../../src/pending/fold.ts";
import { type L1Attributes, l1Cost, operatorFee } from "../../src/pending/opFees.ts";
import { createPendingBlock } from "../../src/pending/pendingBlock.ts";
import { readJson, readJsonLines } from "./vectorFolder.ts";

const LIMITS = { maxDepth: 5 };

const parse = (value: unknown): Flashblock => {
  const parsed = parseMessage(JSON.stringify(value));
  assert.ok("message" in parsed);
  return parsed.message;
};
const messagesOf = (file: string) => readJsonLines(`flashblocks/${file}`).map(parse);
const parentOf = ([first]: readonly Flashblock[]): BlockId => {
  assert.ok(first?.base);
  return { number: first.base.blockNumber - 1n, hash: first.base.parentHash };
};
const read = (body: Body | undefined): Record<string, unknown> => {
  assert.ok(body);
  return JSON.parse(new TextDecoder().decode(body));
};

/** The messages as a feed would bring them, each shown with what its metadata says. */
const play = (messages: readonly Flashblock[], base: BlockId) => {
  const decisions: Decision[] = [];
  let state = emptySequence;
  let chain: PendingChain = { base, blocks: [] };
  const raws: `0x${string}`[] = [];
  for (const message of messages) {
    const step = receive(state, message, base, LIMITS);
    decisions.push(step.decision);
    state = step.state;
    raws.push(...message.diff.transactions);
    chain = fold(chain, message, decodeOnly(raws, message.diff.transactions, "late"));
  }
  const folded = chain.blocks[0];
  assert.ok(folded);
  return { decisions, folded, block: createPendingBlock(folded) };
};

test("unichain: every prefix has the message's hash and receipts root, the last is the sealed block", () => {
  const messages = messagesOf("unichain-sepolia-35535698.flashblocks.jsonl");
  const base = parentOf(messages);
  for (let count = 1; count <= messages.length; count++) {
    const { block, folded, decisions } = play(messages.slice(0, count), base);
    assert.ok(decisions.every((decision, index) => decision === (index === 0 ? "first" : "next")));
    const { diff } = messages[count - 1] ?? folded.newest;
    assert.equal(block.hash, diff.blockHash);
    const receipts = folded.parts.flatMap(({ transactions }) => transactions.map(({ receipt }) => receipt));
    assert.equal(
      orderedTrieRoot(receipts.flatMap((receipt) => (receipt ? [encodeReceipt(receipt)] : []))),
      diff.receiptsRoot,
    );
    // The hash is computed where the feed sends none.
    const silent = {
      ...folded,
      newest: { ...folded.newest, diff: { ...diff, blockHash: `0x${"0".repeat(64)}` as Hash } },
    };
    assert.equal(createPendingBlock(silent).hash, diff.blockHash);
  }
  const sealed = readJson("flashblocks/unichain-sepolia-35535698.sealed-block.json") as Record<string, unknown>;
  const { transactions, ...fields } = read(play(messages, base).block.body(true));
  const { transactions: expected, ...expectedFields } = sealed;
  assert.deepEqual(fields, expectedFields);
  const pendingForm = (expected as Record<string, unknown>[]).map((transaction) => ({
    ...transaction,
    blockHash: null,
  }));
  assert.deepEqual(transactions, pendingForm);
});

test("unichain: receipts and logs of the metadata, with indexes through the whole block", () => {
  const messages = messagesOf("unichain-sepolia-35535698.flashblocks.jsonl");
  const { block } = play(messages, parentOf(messages));
  const receipts = JSON.parse(new TextDecoder().decode(block.receipts())) as Record<string, unknown>[];
  assert.equal(receipts.length, block.transactionHashes.length);
  assert.equal(Number(receipts.at(-1)?.cumulativeGasUsed), Number(messages.at(-1)?.diff.gasUsed));
  const logs = receipts.flatMap(({ logs }) => logs as Record<string, unknown>[]);
  assert.deepEqual(
    logs.map(({ logIndex }) => Number(logIndex)),
    logs.map((_, index) => index),
  );
  assert.deepEqual(
    logs,
    block.logs().map((log) => read(block.formatLog(log))),
  );
});

test("base sepolia: eleven messages in order, repeated transactions do no harm", () => {
  const messages = messagesOf("base-sepolia-33439826.flashblocks.jsonl");
  const { decisions, block } = play(messages, parentOf(messages));
  assert.deepEqual(decisions, ["first", ...Array.from({ length: 10 }, () => "next")]);
  assert.equal(block.hash, messages.at(-1)?.diff.blockHash);
  assert.equal(block.receipts(), undefined);
  assert.equal((read(block.body(false)).transactions as unknown[]).length, block.transactionHashes.length);
  assert.ok(read(block.body(true)));
  assert.deepEqual(block.logs(), []);
});

test("wire pins of three generations and golden messages are read; bytes that are no transactions do no harm", () => {
  const pins = Object.values(readJson("flashblocks/base-wire-format-pins.json") as Record<string, unknown>);
  const golden = readJsonLines("flashblocks/op-rbuilder-golden-wire.jsonl");
  for (const value of [...pins, ...golden]) {
    const message = parse(value);
    if (!message.base) continue;
    const { block } = play([message], parentOf([message]));
    assert.equal(block.hash, message.diff.blockHash);
    for (const full of [true, false]) assert.equal((read(block.body(full)).transactions as unknown[]).length, 1);
    assert.equal(block.receipt(0), undefined);
  }
});

interface FeeVectors {
  readonly fastlz_length: readonly { readonly name: string; readonly input: `0x${string}`; readonly length: number }[];
  readonly l1_fee: readonly {
    readonly fork: string;
    readonly raw?: `0x${string}`;
    readonly l1BaseFee: number;
    readonly baseFeeScalar: number;
    readonly blobBaseFee: number;
    readonly blobBaseFeeScalar: number;
    readonly l1GasUsed?: number;
    readonly l1Fee?: number;
  }[];
  readonly operator_fee: readonly {
    readonly fork: "isthmus" | "jovian";
    readonly gas: number;
    readonly operatorFeeScalar: number;
    readonly operatorFeeConstant: number;
    readonly fee: number;
  }[];
}

const fees = readJson("flashblocks/op-fee-vectors.json") as FeeVectors;
const rulesOf = (fork: string): Rules => ({
  chainId: 10n,
  fork: "prague",
  op: fork === "ecotone" || fork === "isthmus" || fork === "jovian" ? fork : "fjord",
});
const NO_ATTRIBUTES: L1Attributes = {
  baseFee: 0n,
  blobBaseFee: 0n,
  baseFeeScalar: 0n,
  blobBaseFeeScalar: 0n,
  operatorFeeScalar: 0n,
  operatorFeeConstant: 0n,
  daFootprintGasScalar: 400n,
};

test("lengths under FastLZ", () => {
  for (const { name, input, length } of fees.fastlz_length) assert.equal(fastLzLength(parseData(input)), length, name);
});

test("L1 data fees of real and made transactions", () => {
  let checked = 0;
  for (const vector of fees.l1_fee) {
    // A deposit pays none: it never comes so far.
    if (vector.raw === undefined || vector.raw.startsWith("0x7e")) continue;
    const attributes = {
      ...NO_ATTRIBUTES,
      baseFee: BigInt(vector.l1BaseFee),
      blobBaseFee: BigInt(vector.blobBaseFee),
      baseFeeScalar: BigInt(vector.baseFeeScalar),
      blobBaseFeeScalar: BigInt(vector.blobBaseFeeScalar),
    };
    const { fee, gasUsed } = l1Cost(rulesOf(vector.fork), attributes, parseData(vector.raw));
    if (vector.l1Fee !== undefined) assert.equal(fee, BigInt(vector.l1Fee));
    if (vector.l1GasUsed !== undefined) assert.equal(gasUsed, BigInt(vector.l1GasUsed));
    checked++;
  }
  assert.ok(checked >= 3);
});

test("operator fees of Isthmus and Jovian", () => {
  for (const { fork, gas, operatorFeeScalar, operatorFeeConstant, fee } of fees.operator_fee) {
    const attributes = {
      ...NO_ATTRIBUTES,
      operatorFeeScalar: BigInt(operatorFeeScalar),
      operatorFeeConstant: BigInt(operatorFeeConstant),
    };
    assert.equal(operatorFee(rulesOf(fork), attributes, BigInt(gas)), BigInt(fee));
  }
});
