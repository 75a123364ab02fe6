import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { Body } from "../../src/core/view.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { parseFlashblock } from "../../src/feed/parseFlashblock.ts";
import { addMessage } from "../../src/feed/sequence.ts";
import { type Decision, emptySequence } from "../../src/feed/sequenceState.ts";
import { applyMessage, type PendingChain } from "../../src/pending/applyMessage.ts";
import { BlockFormatter } from "../../src/pending/blockFormatter.ts";
import { decodeOnly } from "../../src/pending/messageRecord.ts";
import { readJson, readJsonLines } from "./vectorFolder.ts";

const formatter = new BlockFormatter(() => undefined);
const LIMITS = { maxDepth: 5 };

const parse = (value: unknown): FeedMessage => {
  const parsed = parseFlashblock(JSON.stringify(value));
  assert.ok("message" in parsed);
  return parsed.message;
};
const messagesOf = (file: string) => readJsonLines(`flashblocks/${file}`).map(parse);
const parentOf = ([first]: readonly FeedMessage[]): BlockId => {
  assert.ok(first?.environment);
  return { number: first.environment.number - 1n, hash: first.environment.parentHash };
};
const read = (body: Body | undefined): Record<string, unknown> => {
  assert.ok(body);
  return JSON.parse(new TextDecoder().decode(body));
};

/** Returns the messages in feed order, each with the fields of its metadata. */
const play = (messages: readonly FeedMessage[], base: BlockId) => {
  const decisions: Decision[] = [];
  let state = emptySequence;
  let chain: PendingChain = { base, extraBlockFields: {}, blocks: [] };
  const raws: `0x${string}`[] = [];
  for (const message of messages) {
    const step = addMessage(state, message, base, LIMITS);
    decisions.push(step.decision);
    state = step.state;
    raws.push(...message.transactions);
    chain = applyMessage(chain, message, decodeOnly(raws, message.transactions, "late"));
  }
  const folded = chain.blocks[0];
  assert.ok(folded);
  return { decisions, folded, block: formatter.format(folded) };
};

test("unichain: every prefix has the message's hash and receipts root, the last is the sealed block", () => {
  const messages = messagesOf("unichain-sepolia-35535698.flashblocks.jsonl");
  const base = parentOf(messages);
  for (let count = 1; count <= messages.length; count++) {
    const { block, folded, decisions } = play(messages.slice(0, count), base);
    assert.ok(decisions.every((decision, index) => decision === (index === 0 ? "first" : "next")));
    const { commitments } = messages[count - 1] ?? folded.newest;
    assert.equal(block.hash, commitments.blockHash);
    const receipts = folded.parts.flatMap(({ transactions }) => transactions.map(({ receipt }) => receipt));
    assert.equal(
      orderedTrieRoot(receipts.flatMap((receipt) => (receipt ? [encodeReceipt(receipt)] : []))),
      commitments.receiptsRoot,
    );
    // The hash is computed if the feed sends none.
    const silent = {
      ...folded,
      newest: { ...folded.newest, commitments: { ...commitments, blockHash: `0x${"0".repeat(64)}` as Hash } },
    };
    assert.equal(formatter.format(silent).hash, commitments.blockHash);
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
  assert.equal(Number(receipts.at(-1)?.cumulativeGasUsed), Number(messages.at(-1)?.commitments.gasUsed));
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

test("unichain: the L1 fees of the metadata's receipts equal the increase of the L1 fee vault", () => {
  const file = "unichain-sepolia-35535698.flashblocks.jsonl";
  const messages = messagesOf(file);
  const { block, folded } = play(messages, parentOf(messages));
  const vault = readJsonLines(`flashblocks/${file}`).map((message) => {
    const { metadata } = message as { metadata: { new_account_balances: Record<string, string> } };
    return BigInt(metadata.new_account_balances["0x420000000000000000000000000000000000001a"] ?? 0);
  });
  for (const [at, { firstTransaction, transactions }] of folded.parts.entries()) {
    const receipts = transactions.map((_, position) => read(block.receipt(firstTransaction + position)));
    if (at === 0) {
      assert.equal(receipts[0]?.type, "0x7e");
      assert.equal(receipts[0]?.l1Fee, undefined);
      continue;
    }
    const fees = receipts.reduce((sum, { l1Fee }) => sum + BigInt(String(l1Fee)), 0n);
    assert.equal(fees, (vault[at] ?? 0n) - (vault[at - 1] ?? 0n));
    for (const { l1GasPrice, l1BaseFeeScalar } of receipts) {
      assert.ok(l1GasPrice && l1BaseFeeScalar);
    }
  }
});

test("base sepolia: eleven messages are applied in order, repeated transactions have no effect", () => {
  const messages = messagesOf("base-sepolia-33439826.flashblocks.jsonl");
  const { decisions, block } = play(messages, parentOf(messages));
  assert.deepEqual(decisions, ["first", ...Array.from({ length: 10 }, () => "next")]);
  assert.equal(block.hash, messages.at(-1)?.commitments.blockHash);
  assert.equal(block.receipts(), undefined);
  assert.equal((read(block.body(false)).transactions as unknown[]).length, block.transactionHashes.length);
  assert.ok(read(block.body(true)));
  assert.deepEqual(block.logs(), []);
});

test("messages of three wire versions and golden messages are parsed; bytes that are no transactions have no effect", () => {
  const pins = Object.values(readJson("flashblocks/base-wire-format-pins.json") as Record<string, unknown>);
  const golden = readJsonLines("flashblocks/op-rbuilder-golden-wire.jsonl");
  for (const value of [...pins, ...golden]) {
    const message = parse(value);
    if (!message.environment) {
      continue;
    }
    const { block } = play([message], parentOf([message]));
    assert.equal(block.hash, message.commitments.blockHash);
    for (const full of [true, false]) {
      assert.equal((read(block.body(full)).transactions as unknown[]).length, 1);
    }
    assert.equal(block.receipt(0), undefined);
  }
});
