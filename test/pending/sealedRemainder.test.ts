import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import type { AccountChange } from "../../src/core/stateReader.ts";
import { type Address, type Data, parseData } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import type { BlockContent } from "../../src/state/sources/blockContent.ts";
import { flashblock, hashOf, raw } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";

const SIGNAL = new AbortController().signal;
const HEAD = { number: 101n, hash: hashOf(101n) };

/** A change of one account's balance. */
const change = (address: number, balance: bigint): readonly [Address, AccountChange] => [
  `0x${address.toString(16).padStart(40, "0")}`,
  { account: { balance, nonce: 0n, codeHash: EMPTY_CODE_HASH }, isCleared: false, slots: new Map() },
];

const header = (transactions: readonly Data[]): HeaderFields => ({
  transactionsRoot: orderedTrieRoot(transactions.map(parseData)),
  receiptsRoot: hashOf(5),
  gasUsed: "0x1",
  gasLimit: "0x1c9c380",
  timestamp: `0x${(1_700_000_000n + 202n).toString(16)}`,
  baseFeePerGas: "0x7",
  miner: "0x4200000000000000000000000000000000000011",
  mixHash: hashOf(7),
});

const contentOf = (transactions: readonly Data[]): BlockContent => {
  const { environment, commitments } = flashblock(0);
  assert.ok(environment);
  return { environment, transactions, gasUsed: 1n, logsBloom: commitments.logsBloom, receiptsRoot: hashOf(5) };
};

/** Lets the feed bring one transaction in each of three messages, and seals other transactions. */
const seal = async (t: TestContext, sealed: readonly Data[], skipsReceiptsRoot = false) => {
  const rig = createRig(t, { skipsReceiptsRoot });
  for (const index of [0, 1, 2]) {
    rig.fake.say(`101-${index}`, { changes: [change(index + 1, 1n)] });
    await rig.send(flashblock(index, { transactions: [raw(index)] }));
  }
  rig.heads.move({ number: 101n, header: header(sealed) });
  const found = await rig.pending.findExecuted(HEAD, SIGNAL);
  const { changes } = typeof found === "string" ? assert.fail(found) : found;
  assert.ok(typeof changes === "function");
  return { rig, complete: () => changes(contentOf(sealed)) };
};

test("only the transactions that the feed lacked are executed, after its last message", async (t) => {
  const { rig, complete } = await seal(t, [raw(0), raw(1), raw(2), raw(3), raw(4)]);
  rig.fake.say("101-3", { changes: [change(3, 2n), change(4, 2n)] });
  const changes = await complete();
  assert.ok(typeof changes !== "string");
  assert.deepEqual(
    changes.map((each) => [...each.keys()].map(Number)),
    [[1], [2], [3], [3, 4]],
  );
  const [remainder] = rig.fake.remainders;
  assert.deepEqual(remainder?.transactions, [raw(3), raw(4)]);
  assert.deepEqual([remainder?.before, remainder?.index], [rig.fake.jobs[2]?.id, 3]);
  assert.deepEqual(remainder?.expected, { gasUsed: 1n, logsBloom: contentOf([]).logsBloom, receiptsRoot: hashOf(5) });
});

test("messages that the block does not have are left out", async (t) => {
  for (const [sealed, executed] of [
    [[raw(0), raw(1)], []],
    [[raw(0), raw(1), raw(9)], [raw(9)]],
    [[raw(0), raw(2)], [raw(2)]],
  ] as const) {
    await t.test(sealed.join(), async (t) => {
      const { rig, complete } = await seal(t, sealed);
      const changes = await complete();
      assert.ok(typeof changes !== "string");
      assert.equal(changes.length, sealed.length - executed.length + 1);
      assert.deepEqual(rig.fake.remainders[0]?.transactions, executed);
      assert.equal(rig.fake.remainders[0]?.before, rig.fake.jobs[changes.length - 2]?.id);
    });
  }
});

test("a block with another first transaction has no write set, and nothing is executed", async (t) => {
  const { rig, complete } = await seal(t, [raw(9), raw(1)]);
  assert.equal(await complete(), "incomplete");
  assert.deepEqual(rig.fake.remainders, []);
});

test("a block that is not executed as its header says has no write set", async (t) => {
  const { rig, complete } = await seal(t, [raw(0), raw(1), raw(2), raw(3)]);
  rig.fake.say("101-3", { unverified: "receiptsRoot" });
  assert.equal(await complete(), "mismatch");
  rig.fake.say("101-3", { unverified: "rejected" });
  assert.equal(await complete(), "error");
});

test("a receipts root that the node computes wrongly is not compared", async (t) => {
  const { rig, complete } = await seal(t, [raw(0), raw(1), raw(2), raw(3)], true);
  await complete();
  assert.equal(rig.fake.remainders[0]?.expected.receiptsRoot, undefined);
});

test("the new head and the next pending block do not wait for the execution of the rest", async (t) => {
  const { rig, complete } = await seal(t, [raw(0), raw(1), raw(2), raw(3)]);
  const release = rig.fake.holdRemainders();
  const completing = complete();
  assert.equal(rig.pending.view().heads.latest.number, 101n);
  await rig.send(flashblock(0, { number: 102n, transactions: [raw(5)] }));
  assert.equal(rig.shown(), "102-0");
  assert.equal(rig.view().stateFrom, "view");
  rig.heads.move({ number: 102n });
  assert.equal(rig.pending.view().heads.latest.number, 102n);
  release();
  assert.notEqual(typeof (await completing), "string");
});

test("the rest of a block is not executed after the next head: the state before it is gone", async (t) => {
  const { rig } = await seal(t, [raw(0), raw(1), raw(2), raw(3)]);
  rig.heads.move({ number: 102n });
  assert.equal(await rig.pending.findExecuted(HEAD, SIGNAL), "incomplete");
});
