import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { hashHeader } from "../../src/ethereum/blockHeader.ts";
import type { Data } from "../../src/ethereum/hex.ts";
import type { Commitments, FeedMessage } from "../../src/feed/feedMessage.ts";
import { pendingHeader } from "../../src/feed/flashblockHash.ts";
import { flashblock, hashOf, payloadOf, raw, txHash } from "../support/builders/flashblocks.ts";
import { rootOf } from "./fakeExecutor.ts";
import { createRig } from "./pendingRig.ts";
import { type Rig, sealed } from "./sealBlock.ts";

/** Several copies of a message, of two feeds, of which some are wrong. */

const ZERO = hashOf(0);

/** Creates the messages of a block with one transaction each. Each has the hash of its own header. */
const honestBlock = (number: bigint, count = 3, parentHash = hashOf(number - 1n)): readonly FeedMessage[] => {
  const raws: Data[] = [];
  let environment: FeedMessage["environment"];
  return Array.from({ length: count }, (_, index) => {
    const own = raw(Number(number) * 100 + index);
    raws.push(own);
    const message = flashblock(index, { number, parentHash, transactions: [own] });
    environment ??= message.environment;
    assert.ok(environment);
    const header = pendingHeader(environment, message.commitments, rootOf(raws));
    return { ...message, commitments: { ...message.commitments, blockHash: hashHeader(header) } };
  });
};

const stating = (message: FeedMessage | undefined, commitments: Partial<Commitments>): FeedMessage => {
  assert.ok(message);
  return { ...message, commitments: { ...message.commitments, ...commitments } };
};

/** Seals block 101 with the content of its messages, so that the chain's hashes are known to be true. */
const createTrueRig = async (t: TestContext): Promise<Rig> => {
  const rig = createRig(t);
  const first = honestBlock(101n);
  await rig.send(...first);
  rig.heads.move(sealed(first));
  await turn();
  return rig;
};

test("once a sealed block has shown that hashes are true, a message without its own hash is discarded and counted", async (t) => {
  const rig = await createTrueRig(t);
  const [zero, one, two] = honestBlock(102n);
  assert.ok(zero && one && two);
  await rig.send(zero);
  const jobs = rig.fake.jobs.length;
  for (const wrong of [
    stating(one, { receiptsRoot: hashOf(9) }),
    { ...one, transactions: [] },
    stating(one, { blockHash: hashOf(9) }),
    stating(one, { withdrawalsRoot: hashOf(9) }),
  ]) {
    await rig.send(wrong);
    assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "degraded"], "its place is a gap");
  }
  assert.equal(rig.fake.jobs.length, jobs, "none of them is executed");
  assert.equal((await rig.counted("feedMessages")).wrongHash, 4);
  await rig.send(one, stating(one, { gasUsed: 1n }), two);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "live"]);
});

test("a wrong message is a gap until its right copy arrives, also if it was buffered", async (t) => {
  const rig = await createTrueRig(t);
  const [zero, one, two] = honestBlock(102n);
  assert.ok(zero && one && two);
  await rig.send(zero, stating(two, { gasUsed: 1n }), two);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "degraded"]);
  await rig.send(one);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "live"]);
  assert.equal((await rig.counted("feedMessages")).wrongHash, 1);
});

test("a discarded last message is a gap of its block, so that the next block waits for it or for the head", async (t) => {
  const rig = await createTrueRig(t);
  const [zero, one, two] = honestBlock(102n);
  const next = honestBlock(103n);
  assert.ok(zero && one && two);
  await rig.send(zero, one, stating(two, { receiptsRoot: hashOf(9) }));
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "degraded"]);
  await rig.send(...next);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "degraded"]);
  await rig.send(two);
  assert.deepEqual([rig.shown(), rig.view().mode], ["103-2", "live"]);
  assert.deepEqual(await rig.counted("feedGaps"), { feedGaps: 2 });
});

test("before a sealed block, and on a chain with other hashes, no message is discarded for its hash", async (t) => {
  const rig = createRig(t);
  const block = [0, 1].map((index) => flashblock(index, { transactions: [raw(index)] }));
  await rig.send(...block);
  rig.heads.move(sealed(block));
  await turn();
  await rig.send(flashblock(0, { number: 102n, transactions: [raw(7)] }));
  assert.equal(rig.shown(), "102-0");
  assert.equal((await rig.counted("feedMessages")).wrongHash, undefined);
});

test("after two blocks without a first message that has its own hash, the hashes are not checked any more", async (t) => {
  const rig = await createTrueRig(t);
  for (const number of [102n, 103n]) {
    await rig.send(flashblock(0, { number, transactions: [raw(Number(number))] }));
    assert.equal(rig.view().newest, undefined);
    rig.heads.move({ number });
    await turn();
  }
  await rig.send(flashblock(0, { number: 104n, transactions: [raw(104)] }));
  assert.equal(rig.shown(), "104-0");
});

const unhashed = (index: number, value: number): FeedMessage =>
  flashblock(index, { blockHash: ZERO, transactions: [raw(value)] });

test("without hashes, a verified copy stays", async (t) => {
  const rig = createRig(t);
  await rig.send(unhashed(0, 10), unhashed(1, 11), unhashed(2, 12));
  const jobs = rig.fake.jobs.length;
  rig.fake.say("101-1", { unverified: "gas" });
  await rig.send(unhashed(1, 99));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-2", "live"]);
  assert.deepEqual(rig.view().newest?.transactionHashes, [txHash(10), txHash(11), txHash(12)]);
  assert.equal(rig.fake.jobs.length, jobs);
  assert.equal((await rig.counted("feedMessages")).conflict, 1);
});

test("without hashes, a wrong copy is replaced, and the messages after it stay", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-1", { unverified: "gas" });
  rig.fake.say("101-2", { unverified: "unexecutable" });
  await rig.send(unhashed(0, 10), unhashed(1, 99), unhashed(2, 12));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-0", "degraded"]);
  rig.fake.say("101-1", {});
  rig.fake.say("101-2", {});
  await rig.send(unhashed(1, 11));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-2", "live"]);
  assert.deepEqual(rig.view().newest?.transactionHashes, [txHash(10), txHash(11), txHash(12)]);
  await rig.send(unhashed(1, 99), unhashed(2, 12));
  assert.equal(rig.shown(), "101-2");
});

for (const isFirstRight of [true, false]) {
  test(`without hashes, of two copies that execute the ${isFirstRight ? "first" : "second"} one is right, and stays`, async (t) => {
    const rig = createRig(t);
    await rig.send(unhashed(0, 10));
    rig.fake.say("101-1", isFirstRight ? {} : { unverified: "gas" });
    const release = rig.fake.hold();
    const [right, wrong] = [unhashed(1, 11), unhashed(1, 99)];
    await rig.send(isFirstRight ? right : wrong);
    rig.fake.say("101-1", isFirstRight ? { unverified: "gas" } : {});
    await rig.send(isFirstRight ? wrong : right);
    assert.deepEqual([rig.shown(), rig.view().mode], ["101-0", "live"]);
    release();
    await turn();
    assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "live"]);
    assert.deepEqual(rig.view().newest?.transactionHashes, [txHash(10), txHash(11)]);
  });
}

test("without hashes, a wrong first message that was shown stays until its right copy is executed", async (t) => {
  const rig = createRig(t);
  const metadata = {
    block_number: 101,
    receipts: {
      [txHash(10)]: {
        status: "0x1",
        cumulativeGasUsed: "0x5208",
        logs: [{ address: `0x${"aa".repeat(20)}`, topics: [], data: "0x01" }],
      },
    },
  };
  rig.fake.say("101-0", { unverified: "gas" });
  await rig.send(flashblock(0, { blockHash: ZERO, transactions: [raw(10)], gasUsed: 1n, metadata }));
  assert.deepEqual([rig.shown(), rig.view().mode, rig.view().newest?.logs().length], ["101-0", "unverified", 1]);
  rig.fake.say("101-0", {});
  const release = rig.fake.hold();
  await rig.send(flashblock(0, { blockHash: ZERO, transactions: [raw(10)], metadata }));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-0", "unverified"]);
  release();
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-0", "live"]);
});

test("without hashes, of two first messages that are both wrong each is executed once", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", { unverified: "gas" });
  await rig.send(unhashed(0, 10));
  const release = rig.fake.hold();
  await rig.send(unhashed(0, 99));
  release();
  rig.fake.hold();
  await turn();
  assert.equal(rig.fake.jobs.length, 2);
  await rig.send(unhashed(1, 11), unhashed(0, 10));
  assert.deepEqual(rig.view().newest?.transactionHashes, [txHash(99)]);
  assert.equal((await rig.counted("feedMessages")).old, 1);
});

test("the transactions of an attempt that is shown again after another one are published again", async (t) => {
  const rig = createRig(t);
  const other = (index: number, transactions: readonly Data[]): FeedMessage => ({
    ...flashblock(index, { payload: payloadOf(9), transactions }),
    connection: 1,
  });
  await rig.send(flashblock(0), flashblock(1, { transactions: [raw(7)] }));
  await rig.send(other(0, []), other(1, [raw(8)]), other(2, [raw(7)]));
  assert.deepEqual(rig.view().newest?.transactionHashes, [txHash(8), txHash(7)]);
  const before = rig.changes.length;
  await rig.send(flashblock(2), flashblock(3));
  assert.deepEqual(rig.view().newest?.transactionHashes, [txHash(7)]);
  const extended = rig.changes.slice(before).flatMap((change) => change.extended);
  const [first] = extended.filter(({ kind, toTransaction }) => kind === "transactions" && toTransaction === 1);
  assert.equal(first?.fromTransaction, 0, "its place in this attempt is published");
});
