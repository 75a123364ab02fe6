import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Body, PendingMode } from "../../src/core/view.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import {
  assertState,
  createWitnessFetch,
  type Frame,
  findTruth,
  framesOf,
  hashesOf,
  headTimes,
  MESSAGES_OF_BLOCK,
  type PlayOptions,
  play,
  positionOf,
  type Sample,
  statePositionOf,
} from "./playBuilder.ts";
import { readRecordedBuilder } from "./realBlocks.ts";

const recording = readRecordedBuilder();
const fetch = createWitnessFetch(recording);
const frames = framesOf(recording);
const truth = await findTruth(recording, fetch);

/** Heads arrive before, shortly after or long after the first message of the next block. */
const HEADS_AFTER_MS = [-40, 60, 250] as const;
const FIRST = frames[0]?.number ?? 0;

/** No block was complete before the first: its last message may be lost until its head arrives. */
const isFirstOpen = (
  sent: readonly Frame[],
  heads: ReadonlyMap<number, number>,
  first: number,
  atMs: number,
): boolean => atMs >= (sent.find(({ number }) => number > first)?.atMs ?? 0) && atMs < (heads.get(first) ?? 0);

const read = (body: Body | undefined): unknown => JSON.parse(new TextDecoder().decode(body));

const runPlay = (t: TestContext, options: PlayOptions) => play(t, recording, fetch, options);

/** Asserts that no value goes back, and that all values are of one prefix. */
const assertForward = (samples: readonly Sample[]): void => {
  let before = 0;
  let last: Sample["view"] | undefined;
  for (const { atMs, view } of samples) {
    if (view === last) {
      continue;
    }
    const position = statePositionOf(view);
    assert.ok(position >= before, `at ${atMs} ms: ${before} messages, then ${position}`);
    assertState(view, truth, position);
    before = position;
    last = view;
  }
};

const newestArrived = (at: readonly Frame[], heads: ReadonlyMap<number, number>, atMs: number): number => {
  const arrived = at.filter((frame) => frame.atMs <= atMs).map(({ number, index }) => positionOf(number, index));
  const sealed = [...heads].filter(([, headMs]) => headMs <= atMs);
  return Math.max(0, ...arrived, ...sealed.map(([number]) => positionOf(number, MESSAGES_OF_BLOCK - 1)));
};

test("the builder's own balances are those of each prefix", () => {
  for (const [position, frame] of recording.frames.entries()) {
    const { new_account_balances: balances } = JSON.parse(frame).metadata as {
      readonly new_account_balances: Readonly<Record<Address, string>>;
    };
    for (const [address, balance] of Object.entries(balances)) {
      const account = truth[position + 1]?.get(address as Address);
      // Accounts that were read and not written are listed too.
      if (account) {
        assert.equal(account.balance, BigInt(balance), `${address} after ${position + 1} messages`);
      }
    }
  }
});

for (const afterMs of HEADS_AFTER_MS) {
  for (const delayMs of [0, 300]) {
    test(`30 frames, heads ${afterMs} ms after the next block's first, executions ${delayMs} ms late: live after the first block`, async (t) => {
      const heads = headTimes(frames, afterMs);
      const { samples, unverified, gaps, mismatches } = await runPlay(t, { frames, headTimes: heads, delayMs });
      assert.deepEqual([unverified, gaps, mismatches], [0, 0, 0]);
      assertForward(samples);
      for (const { atMs, view } of samples) {
        if (isFirstOpen(frames, heads, FIRST, atMs)) {
          assert.equal(view.pending?.mode, "degraded", `at ${atMs} ms`);
          continue;
        }
        assert.equal(view.pending?.mode, "live", `at ${atMs} ms`);
        // A message may have to wait for the last one of a block that was sealed in the meantime.
        assert.ok(statePositionOf(view) >= newestArrived(frames, heads, atMs - 2 * delayMs), `at ${atMs} ms`);
      }
      const shown = new Set(samples.map(({ view }) => statePositionOf(view)));
      if (delayMs === 0) {
        const waiting = frames.filter(({ number, atMs }) => number > FIRST && isFirstOpen(frames, heads, FIRST, atMs));
        const together = Math.max(0, waiting.length - 1);
        assert.equal(shown.size, frames.length - together, "each other prefix was served");
      }
    });
  }
}

type Receipt = Readonly<Record<string, unknown>>;

/** The fields of deposits are read from the first sealed block, and used from the base after it on. */
const LEARNED = 431n;
/** This builder's receipts of deposits have L1 fields, which op-geth's do not have. */
const withoutL1OfDeposit = (receipt: Receipt): Receipt =>
  receipt.type === "0x7e" ? Object.fromEntries(Object.entries(receipt).filter(([name]) => !OF_L1.has(name))) : receipt;
const OF_L1 = new Set([
  ...["l1GasPrice", "l1GasUsed", "l1Fee", "l1BaseFeeScalar", "l1BlobBaseFee", "l1BlobBaseFeeScalar"],
  ...["operatorFeeScalar", "operatorFeeConstant", "daFootprintGasScalar", "blobGasUsed"],
]);

test("the last view of each block equals the sealed block", async (t) => {
  const { samples } = await runPlay(t, { frames, headTimes: headTimes(frames, 60) });
  const blocks = new Map(
    samples.flatMap(({ view }) => (view.pending?.blocks ?? []).map((block) => [block.number, block] as const)),
  );
  assert.equal(blocks.size, frames.length / MESSAGES_OF_BLOCK);
  for (const [number, block] of blocks) {
    const sealed = recording.blocks.find((each) => BigInt(each.number) === number);
    assert.ok(sealed);
    assert.deepEqual(block.transactionHashes, hashesOf(sealed));
    const { hash, stateRoot, transactions, ...fields } = read(block.body(false)) as Record<string, unknown>;
    const { hash: sealedHash, stateRoot: sealedRoot, transactions: list, ...sealedFields } = sealed;
    assert.deepEqual(fields, sealedFields);
    const text = JSON.stringify(recording.receipts.get(sealed.hash)).replaceAll(sealed.hash, block.hash);
    const receipts = read(block.receipts()) as readonly Receipt[];
    const sealedReceipts = JSON.parse(text) as readonly Receipt[];
    if (number < LEARNED) {
      assert.deepEqual(receipts, sealedReceipts.map(withoutL1OfDeposit));
      continue;
    }
    assert.deepEqual(receipts, sealedReceipts);
    const { transactions: full } = read(block.body(true)) as { readonly transactions: unknown };
    assert.deepEqual(
      full,
      (list as readonly object[]).map((transaction) => ({ ...transaction, blockHash: null })),
    );
  }
});

/** Returns the expected mode, from the messages and heads that have arrived. */
const expectedMode = (lost: Frame, heads: ReadonlyMap<number, number>, atMs: number): PendingMode => {
  const sent = frames.filter((frame) => frame !== lost);
  const firsts = [lost === frames[0] ? undefined : FIRST, lost.number === FIRST ? FIRST + 1 : undefined];
  if (firsts.some((first) => first !== undefined && isFirstOpen(sent, heads, first, atMs))) {
    return "degraded";
  }
  const sealedMs = heads.get(lost.number) ?? 0;
  if (lost === frames[0]) {
    // The connection began in the middle of a block, so that the feed is used from its second block on.
    const next = frames.find(({ number }) => number > lost.number);
    return atMs < Math.max(sealedMs, next?.atMs ?? 0) ? "stale" : "live";
  }
  const follows = frames[frames.indexOf(lost) + 1];
  const isKnown = follows !== undefined && atMs >= follows.atMs && atMs < sealedMs;
  return isKnown ? "degraded" : "live";
};

for (const [afterMs, delayMs] of [
  [-40, 0],
  [60, 300],
  [250, 0],
] as const) {
  test(`each frame lost in turn, heads ${afterMs} ms after the next block's first, executions ${delayMs} ms late`, async (t) => {
    const heads = headTimes(frames, afterMs);
    for (const lost of frames) {
      const rest = frames.filter((frame) => frame !== lost);
      const { samples, unverified, gaps } = await runPlay(t, { frames: rest, headTimes: heads, delayMs });
      const name = `${lost.number}-${lost.index} lost`;
      assert.equal(unverified, 0, name);
      assertForward(samples);
      for (const { atMs, view } of samples) {
        assert.equal(view.pending?.mode, expectedMode(lost, heads, atMs), `${name}: at ${atMs} ms`);
      }
      const isLastOfBlock = lost.index === MESSAGES_OF_BLOCK - 1;
      const isUnseen = lost === frames[0] || lost === frames.at(-1) || (isLastOfBlock && afterMs < 0);
      assert.equal(gaps > 0, !isUnseen, `${name}: ${gaps} gaps counted`);
    }
  });
}
