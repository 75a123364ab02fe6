import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { hashOf } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";
import { sealBlock } from "./sealBlock.ts";

const ALICE: Address = `0x${"aa".repeat(20)}`;

const accept = async (t: TestContext) => {
  const rig = createRig(t);
  const known = new Set<Hash>();
  const sent = (nonce: bigint): Hash => {
    const hash = hashOf(0x5e47n + nonce);
    known.add(hash);
    rig.answers.set(`eth_getTransactionByHash ${hash}`, {});
    rig.pending.recordSubmitted(hash, ALICE, nonce);
    return hash;
  };
  const drop = (hash: Hash) => rig.answers.delete(`eth_getTransactionByHash ${hash}`);
  const sealIn = (hash: Hash, number: bigint) =>
    rig.answers.set(`eth_getTransactionByHash ${hash}`, { blockNumber: `0x${number.toString(16)}` });
  return { rig, sent, drop, sealIn };
};

test("consecutive submitted transactions advance the nonce", async (t) => {
  const { rig, sent } = await accept(t);
  sent(5n);
  sent(6n);
  sent(8n);
  assert.equal(rig.view().nonce(ALICE, 5n), 7n);
  assert.equal(rig.view().nonce(ALICE, 4n), 4n);
  sent(7n);
  assert.equal(rig.view().nonce(ALICE, 5n), 9n);
});

test("the nonce falls back within two blocks after the node drops a submitted transaction", async (t) => {
  const { rig, sent, drop } = await accept(t);
  sent(5n);
  const second = sent(6n);
  await sealBlock(rig, 101n);
  assert.equal(rig.view().nonce(ALICE, 5n), 7n);
  drop(second);
  await sealBlock(rig, 102n);
  await sealBlock(rig, 103n);
  await turn();
  assert.equal(rig.view().nonce(ALICE, 5n), 6n);
});

test("a sealed transaction is evicted one block later, and no node is asked for it again", async (t) => {
  const { rig, sent, sealIn } = await accept(t);
  const hash = sent(5n);
  sealIn(hash, 101n);
  await sealBlock(rig, 101n);
  assert.equal(rig.view().nonce(ALICE, 5n), 6n);
  await sealBlock(rig, 102n);
  await turn();
  assert.equal(rig.view().nonce(ALICE, 5n), 5n);
  const questions = () => rig.asked.filter((question) => question === "eth_getTransactionByHash").length;
  const before = questions();
  await sealBlock(rig, 103n);
  await turn();
  assert.equal(questions(), before);
});

test("a submitted transaction is evicted after five minutes", async (t) => {
  const { rig, sent } = await accept(t);
  sent(5n);
  await rig.pass(5 * 60_000 + 1_000);
  await sealBlock(rig, 101n);
  assert.equal(rig.view().nonce(ALICE, 5n), 5n);
});
