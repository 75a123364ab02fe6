import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { SharedValues } from "../../src/core/sharedValues.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { SharedNonces, SubmittedNonces } from "../../src/pending/submittedNonces.ts";
import { hashOf } from "../support/builders/flashblocks.ts";
import { createRig, type RigOptions } from "./pendingRig.ts";
import { sealBlock } from "./sealBlock.ts";

const ALICE: Address = `0x${"aa".repeat(20)}`;

/** A transaction is looked up when it is so many blocks old. */
const REVIEWED_AFTER = 10;
/** It is dropped after so many lookups in a row without it. */
const MISSES = 8;
const READ = "eth_getTransactionByHash";

const accept = async (t: TestContext, options: RigOptions = {}) => {
  const rig = createRig(t, options);
  let number = 100n;
  const sent = (nonce: bigint): Hash => {
    const hash = hashOf(0x5e47n + nonce);
    rig.answers.set(`${READ} ${hash}`, {});
    void rig.pending.recordSubmitted(hash, ALICE, nonce);
    return hash;
  };
  const drop = (hash: Hash) => rig.answers.delete(`${READ} ${hash}`);
  const find = (hash: Hash) => rig.answers.set(`${READ} ${hash}`, {});
  const sealIn = (hash: Hash, block: bigint) =>
    rig.answers.set(`${READ} ${hash}`, { blockNumber: `0x${block.toString(16)}` });
  const lookups = () => rig.asked.filter((method) => method === READ).length;
  /** Seals blocks, and returns the number of lookups at each. */
  const seal = async (count: number): Promise<readonly number[]> => {
    const counts: number[] = [];
    for (let each = 0; each < count; each++) {
      const before = lookups();
      number++;
      await sealBlock(rig, number);
      await turn();
      counts.push(lookups() - before);
    }
    return counts;
  };
  const nonce = (from: bigint) => rig.pending.advanceNonce(ALICE, from);
  return { rig, sent, drop, find, sealIn, seal, nonce, lookups };
};

test("consecutive submitted transactions advance the nonce", async (t) => {
  const { sent, nonce } = await accept(t);
  sent(5n);
  sent(6n);
  sent(8n);
  assert.equal(await nonce(5n), 7n);
  assert.equal(await nonce(4n), 4n);
  sent(7n);
  assert.equal(await nonce(5n), 9n);
});

test("transactions in flight are looked up when they are 10 blocks old, 20 at each head", async (t) => {
  const { sent, seal, nonce, lookups } = await accept(t);
  for (let at = 0n; at < 500n; at++) {
    sent(at);
  }
  assert.deepEqual(await seal(REVIEWED_AFTER - 1), Array(REVIEWED_AFTER - 1).fill(0));
  assert.deepEqual(await seal(25), Array(25).fill(20));
  assert.equal(lookups(), 500);
  assert.equal(await nonce(0n), 500n);
});

test("all transactions have their turn before one is looked up again", async (t) => {
  const { sent, seal, sealIn, nonce } = await accept(t);
  for (let at = 0n; at < 40n; at++) {
    sealIn(sent(at), at < 20n ? 1_000n : 101n);
  }
  await seal(REVIEWED_AFTER);
  assert.equal(await nonce(20n), 40n);
  await seal(1);
  assert.equal(await nonce(20n), 20n);
});

test("a transaction is looked up when it is 30 seconds old", async (t) => {
  const { rig, sent, seal } = await accept(t);
  sent(5n);
  await rig.pass(29_000);
  assert.deepEqual(await seal(1), [0]);
  await rig.pass(1_000);
  assert.deepEqual(await seal(1), [1]);
});

test("some responses of null do not move the nonce back, because one machine of a node may not have the transaction", async (t) => {
  const { sent, drop, find, seal, nonce } = await accept(t);
  sent(5n);
  const second = sent(6n);
  await seal(REVIEWED_AFTER - 1);
  for (let round = 0; round < 3; round++) {
    drop(second);
    await seal(MISSES - 1);
    assert.equal(await nonce(5n), 7n);
    find(second);
    await seal(1);
  }
  drop(second);
  await seal(MISSES);
  assert.equal(await nonce(5n), 6n);
});

test("a sealed transaction is evicted, and no node is asked for it again", async (t) => {
  const { sent, sealIn, seal, nonce } = await accept(t);
  sealIn(sent(5n), 101n);
  await seal(1);
  assert.equal(await nonce(5n), 6n);
  assert.deepEqual((await seal(REVIEWED_AFTER)).slice(-2), [1, 0]);
  assert.equal(await nonce(5n), 5n);
});

test("a submitted transaction is evicted after five minutes", async (t) => {
  const { rig, sent, seal, nonce } = await accept(t);
  sent(5n);
  await rig.pass(5 * 60_000 + 1_000);
  await seal(1);
  assert.equal(await nonce(5n), 5n);
});

test("with more than 1,024 transactions in flight the nonce is an error until enough are sealed", async (t) => {
  const { sent, nonce } = await accept(t);
  for (let at = 0n; at < 1_030n; at++) {
    sent(at);
  }
  await assert.rejects(nonce(0n), { code: -32000 });
  await assert.rejects(nonce(5n), { code: -32000 });
  assert.equal(await nonce(6n), 1_030n);
});

const createLocal = () => new SubmittedNonces({ find: async () => [], head: () => 0n, nowMs: () => 0 });

/** A store that replicas share, whose writes end by the test. */
const createShared = () => {
  const values = new Map<string, Uint8Array>();
  const writes: (() => void)[] = [];
  const sharedValues: SharedValues = {
    get: async (key) => values.get(key),
    set: (key, bytes) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      writes.push(() => {
        values.set(key, bytes);
        resolve();
      });
      return promise;
    },
  };
  return { sharedValues, writes };
};

test("a send ends when other replicas can read its nonce, or after 50 ms", async (t) => {
  const { sharedValues, writes } = createShared();
  const { rig } = await accept(t, { sharedValues });
  let ended = 0;
  const send = (nonce: bigint) =>
    rig.pending.recordSubmitted(hashOf(nonce), ALICE, nonce).then(() => {
      ended++;
    });
  const first = send(1n);
  await turn();
  assert.equal(ended, 0);
  writes[0]?.();
  await first;
  const second = send(2n);
  t.mock.timers.tick(49);
  await turn();
  assert.equal(ended, 1);
  t.mock.timers.tick(1);
  await second;
});

test("a replica reads all transactions that others have in flight, or returns an error", async (t) => {
  const { sharedValues, writes } = createShared();
  const one = new SharedNonces(createLocal(), sharedValues);
  const other = new SharedNonces(createLocal(), sharedValues);
  const send = (nonce: bigint): void => {
    void one.recordSubmitted(hashOf(nonce), ALICE, nonce);
    writes.at(-1)?.();
  };
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (let nonce = 0n; nonce < 500n; nonce++) {
    send(nonce);
  }
  assert.equal(await other.advance(ALICE, 0n), 500n);
  assert.equal(await other.advance(ALICE, 500n), 500n);
  for (let nonce = 500n; nonce < 1_200n; nonce++) {
    send(nonce);
  }
  await assert.rejects(other.advance(ALICE, 0n), { code: -32000 });
  assert.equal(await other.advance(ALICE, 1_000n), 1_200n);
});
