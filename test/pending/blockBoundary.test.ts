import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { nextBaseFee } from "../../src/ethereum/blockFees.ts";
import { createOpForks } from "../../src/ethereum/chainForks.ts";
import { formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { newestRulesAt } from "../../src/ethereum/rules.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { flashblock, hashOf, raw, txHash } from "../support/builders/flashblocks.ts";
import { ALICE, account, createRig } from "./pendingRig.ts";
import { block, createBegunRig, type Rig, sealed } from "./sealBlock.ts";

/** The last message of a block is lost or late, while the next block is shown. */

test("a late message of the block below leaves the shown block above", async (t) => {
  const rig = await createBegunRig(t);
  const log = { address: ALICE, topics: [], data: "0x01" as const };
  rig.fake.say("102-0", { logs: [log] });
  rig.fake.say("102-1", { logs: [log] });
  const [zero, one, late] = block(101n, 3);
  assert.ok(zero && one && late);
  await rig.send(zero, one, ...block(102n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "live"]);
  const { id } = rig.view();
  const release = rig.fake.hold();
  await rig.send(late);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "unverified"]);
  assert.equal(rig.view().blocks[0]?.transactionHashes.length, 3);
  release();
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "live"]);
  assert.notEqual(rig.view().id, id, "threads keep values of the state by this id");
  const announced = rig.changes.flatMap(({ extended }) => extended).filter(({ kind }) => kind === "transactions");
  const hashes = announced.flatMap(({ block: { transactionHashes }, fromTransaction, toTransaction }) =>
    transactionHashes.slice(fromTransaction, toTransaction),
  );
  assert.equal(new Set(hashes).size, hashes.length, "each transaction is announced once");
  assert.ok(hashes.includes(txHash(10_102)));
});

test("the first user message that fails withdraws its block while the block below is not sealed", async (t) => {
  const rig = await createBegunRig(t);
  rig.fake.say("101-1", { changes: [[ALICE, { account: account(2n, 1n), slots: new Map(), isCleared: false }]] });
  rig.fake.say("102-0", { logs: [{ address: ALICE, topics: [], data: "0x" }] });
  rig.fake.say("102-1", { unverified: "receiptsRoot" });
  const [zero, one, two] = block(102n, 3);
  assert.ok(zero && one && two);
  await rig.send(...block(101n), zero);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-0", "live"]);
  await rig.send(one, two);
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "degraded"]);
  assert.equal(rig.view().nonce(ALICE, 0n), 2n);
  rig.fake.say("102-1", {});
  rig.heads.move({ number: 101n });
  await turn();
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "live"]);
});

test("a later message that fails leaves the verified ones of its block", async (t) => {
  const rig = await createBegunRig(t);
  rig.fake.say("102-2", { unverified: "gas" });
  await rig.send(...block(101n), ...block(102n, 3));
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-1", "degraded"]);
});

const FORKS = createOpForks(10n, { canyon: 0n, holocene: 0n, jovian: 0n });
const EXTRA_DATA = "0x01000000fa0000000600000000000000ff" as const;
const GAS_LIMIT = 30_000_000n;

/** Creates a block of three messages. The gas of each is far from the target, so that each of them moves the base fee. */
const feeBlock = (
  number: bigint,
  baseFeePerGas: bigint,
  footprint: Pick<FeedMessage["commitments"], "blobGasUsed"> = { blobGasUsed: 0n },
): readonly FeedMessage[] =>
  block(number, 3).map((message, index) => ({
    ...message,
    environment: message.environment && { ...message.environment, baseFeePerGas, extraData: EXTRA_DATA },
    commitments: { ...message.commitments, gasUsed: BigInt(index + 1) * 9_000_000n, ...footprint },
  }));

const feeAfter = (baseFeePerGas: bigint, gasUsed: bigint): bigint =>
  nextBaseFee(
    {
      baseFeePerGas,
      gasUsed,
      gasLimit: GAS_LIMIT,
      blobGasUsed: 0n,
      extraData: Buffer.from(EXTRA_DATA.slice(2), "hex"),
    },
    newestRulesAt(FORKS, 101n, 1_700_000_202n),
  );

const headerOf = (number: bigint, baseFeePerGas: bigint, gasUsed: bigint) => ({
  number: formatQuantity(number),
  timestamp: formatQuantity(1_700_000_000n + number * 2n),
  gasLimit: formatQuantity(GAS_LIMIT),
  gasUsed: formatQuantity(gasUsed),
  baseFeePerGas: formatQuantity(baseFeePerGas),
  blobGasUsed: "0x0",
  extraData: EXTRA_DATA,
});

/** The chain's newest sealed blocks have shown whether their base fees follow the rule. */
const createFeeRig = async (t: TestContext, follows: boolean): Promise<Rig> => {
  const rig = await createBegunRig(t, { forks: () => FORKS, head: 98n });
  rig.heads.move(
    { number: 99n, header: headerOf(99n, 1_000_000n, 27_000_000n) },
    { number: 100n, header: headerOf(100n, follows ? feeAfter(1_000_000n, 27_000_000n) : 7n, 27_000_000n) },
  );
  await turn();
  return rig;
};

test("a base fee that does not follow from the block below shows that its last message is missing", async (t) => {
  const rig = await createFeeRig(t, true);
  const [zero, one, lost] = feeBlock(101n, 1_000_000n);
  assert.ok(zero && one && lost);
  await rig.send(zero, one, ...feeBlock(102n, feeAfter(1_000_000n, lost.commitments.gasUsed)));
  assert.deepEqual([rig.shown(), rig.view().mode], ["101-1", "degraded"]);
  await rig.send(lost);
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "live"]);
});

test("a chain whose base fees do not follow the rule is not judged by them", async (t) => {
  const rig = await createFeeRig(t, false);
  await rig.send(...feeBlock(101n, 1_000_000n), ...feeBlock(102n, 123n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "live"]);
});

test("without blobGasUsed, which counts since Jovian, no message is taken for missing", async (t) => {
  const rig = await createFeeRig(t, true);
  // The data footprint of block 101 is above its gas, so that another base fee follows than from the gas alone.
  await rig.send(...feeBlock(101n, 1_000_000n, { blobGasUsed: undefined }), ...feeBlock(102n, 123n));
  assert.deepEqual([rig.shown(), rig.view().mode], ["102-2", "live"]);
});

test("a fork after which messages no longer have the hashes of sealed blocks costs the boundary of one block", async (t) => {
  const rig = createRig(t);
  const seal = async (number: bigint, lastHash: Hash): Promise<void> => {
    const last = flashblock(1, { number, blockHash: lastHash, transactions: [raw(Number(number))] });
    const messages = [flashblock(0, { number }), last];
    await rig.send(...messages, flashblock(0, { number: number + 1n }));
    modes.push([rig.shown(), rig.view().mode]);
    rig.heads.move(sealed(messages, number));
    await turn();
  };
  const modes: (readonly string[])[] = [];
  for (const number of [101n, 102n, 103n]) {
    await seal(number, hashOf(number));
  }
  for (const number of [104n, 105n, 106n]) {
    await seal(number, hashOf(number * 1_000n));
  }
  assert.deepEqual(modes, [
    ["101-1", "degraded"],
    ["103-0", "live"],
    ["104-0", "live"],
    ["104-1", "degraded"],
    ["106-0", "live"],
    ["107-0", "live"],
  ]);
});
