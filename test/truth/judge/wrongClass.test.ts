import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { EMITTER } from "../chain/emitter.ts";
import { answerCall } from "../chain/nodeAnswers.ts";

import { ancestorAt, FEE_RECIPIENT, type TruthBlock } from "../chain/truthBlock.ts";
import { TruthChain } from "../chain/truthChain.ts";
import { Judge } from "./judge.ts";

/** Later than any lag that the judge allows. */
const LATER_MS = 30_000;

/** A chain that has left a block, and a function that returns the class of a result for a call. */
const createRig = async () => {
  const chain = await TruthChain.create(901, 1);
  await chain.mine(3);
  const left = chain.head;
  await chain.reorg(1, 2);
  const startMs = performance.now() + LATER_MS;
  const classOf = (call: ChainCall, result: unknown): string => {
    const verdict = new Judge().judge(chain, { call, result, startMs, endMs: startMs }, "a");
    return verdict.kind === "true" || verdict.kind === "error" ? verdict.kind : verdict.class;
  };
  const truthOf = ({ method, params }: ChainCall): unknown => answerCall({ chain, head: chain.head }, method, params);
  return { chain, left, classOf, truthOf };
};

const numberOf = ({ number }: TruthBlock): string => `0x${number.toString(16)}`;

test("values of another block, of a block that was left, and of no block have their own classes", async () => {
  const { chain, left, classOf, truthOf } = await createRig();
  const older = ancestorAt(chain.head, chain.head.number - 20) ?? chain.head;
  const balance = (block: string): ChainCall => ({ method: "eth_getBalance", params: [FEE_RECIPIENT, block] });
  assert.equal(classOf(balance("latest"), truthOf(balance("latest"))), "true");
  assert.equal(classOf(balance("latest"), truthOf(balance(numberOf(older)))), "otherBlock");
  assert.equal(classOf(balance("latest"), "0x1"), "forged");
  const slot: ChainCall = { method: "eth_getStorageAt", params: [EMITTER, "0x0", "latest"] };
  assert.equal(classOf(slot, left.state.slot), "orphaned");
  const block: ChainCall = { method: "eth_getBlockByNumber", params: [numberOf(left), false] };
  assert.equal(classOf(block, left.json), "orphaned");
  assert.equal(classOf(block, older.json), "otherBlock");
  assert.equal(classOf(block, { ...left.json, hash: older.hash }), "forged");
});

test("a list that lacks logs, has logs of another block, or of none is recognized", async () => {
  const { chain, left, classOf, truthOf } = await createRig();
  const call: ChainCall = { method: "eth_getLogs", params: [{ address: EMITTER, fromBlock: "0x10", toBlock: "0x30" }] };
  const logs = truthOf(call) as readonly object[];
  assert.equal(classOf(call, logs), "true");
  assert.equal(classOf(call, logs.slice(1)), "missingLogs");
  assert.equal(classOf(call, []), "missingLogs");
  assert.equal(classOf(call, [...logs, ...chain.head.logs]), "otherBlock");
  assert.equal(classOf(call, [...logs, ...left.logs]), "orphaned");
  assert.equal(
    classOf(
      call,
      logs.map((log) => ({ ...log, data: "0x1" })),
    ),
    "forged",
  );
});

test("another transaction, a changed one, and null for one that exists are recognized", async () => {
  const { chain, classOf } = await createRig();
  const [first, other] = [chain.head, ancestorAt(chain.head, chain.head.number - 5) ?? chain.head];
  const call: ChainCall = { method: "eth_getTransactionReceipt", params: [first.hashes[0]] };
  const [receipt, otherReceipt] = [first.receipts[0], other.receipts[0]];
  assert.equal(classOf(call, receipt), "true");
  assert.equal(classOf(call, otherReceipt), "wrongTransaction");
  assert.equal(classOf(call, { ...receipt, status: "0x0" }), "forged");
  assert.equal(classOf(call, null), "nullForExisting");
});
