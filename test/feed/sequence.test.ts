import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { BlockId } from "../../src/core/heads.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { addHead, addMessage, isDegraded } from "../../src/feed/sequence.ts";
import { type Decision, emptySequence, type SequenceLimits, type SequenceState } from "../../src/feed/sequenceState.ts";
import { flashblock, hashOf, payloadOf } from "../support/builders/flashblocks.ts";

const LIMITS = { maxDepth: 5 };
const head = (number: bigint): BlockId => ({ number, hash: hashOf(number) });
const HEAD = head(100n);

const play = (
  messages: readonly FeedMessage[],
  from: SequenceState = emptySequence,
  at: BlockId = HEAD,
  limits: SequenceLimits = LIMITS,
) => {
  const decisions: Decision[] = [];
  let state = from;
  for (const message of messages) {
    const step = addMessage(state, message, at, limits);
    state = step.state;
    decisions.push(step.decision);
  }
  return { state, decisions };
};
/** `101: 0 1 2` for each block. */
const shape = ({ blocks }: SequenceState): string[] =>
  blocks.map(({ number, messages }) => `${number}: ${messages.map(({ index }) => index).join(" ")}`);

const block = (number: bigint, count: number) =>
  Array.from({ length: count }, (_, index) => flashblock(index, { number }));

test("messages in order, across a block boundary, before the first block is sealed", () => {
  const { state, decisions } = play([...block(101n, 3), ...block(102n, 2)]);
  assert.deepEqual(decisions, ["first", "next", "next", "firstOfNextBlock", "next"]);
  assert.deepEqual(shape(state), ["101: 0 1 2", "102: 0 1"]);
  assert.equal(isDegraded(state), false);
});

test("a duplicate changes nothing", () => {
  const [first, second] = block(101n, 2);
  assert.ok(first && second);
  const { state, decisions } = play([first, second, second, first]);
  assert.deepEqual(decisions, ["first", "next", "duplicate", "duplicate"]);
  assert.deepEqual(shape(state), ["101: 0 1"]);
});

test("a connection that opens inside a block waits for index 0", () => {
  const { state, decisions } = play(block(101n, 4).slice(2));
  assert.deepEqual(decisions, ["waiting", "waiting"]);
  assert.deepEqual(shape(state), []);
});

test("a gap leaves the prefix valid, and the missing message from any feed closes it", () => {
  const [zero, one, two, three] = block(101n, 4);
  assert.ok(zero && one && two && three);
  const gap = play([zero, two, three]);
  assert.deepEqual(gap.decisions, ["first", "gap", "gap"]);
  assert.deepEqual(shape(gap.state), ["101: 0"]);
  assert.ok(isDegraded(gap.state));
  const filled = play([one], gap.state);
  assert.deepEqual(filled.decisions, ["next"]);
  assert.deepEqual(shape(filled.state), ["101: 0 1 2 3"]);
  assert.ok(!isDegraded(filled.state));
});

test("after a gap the next block waits until the head passes the incomplete block", () => {
  const gap = play([flashblock(0), flashblock(2), ...block(102n, 2)]);
  assert.deepEqual(gap.decisions, ["first", "gap", "gap", "waiting"]);
  assert.deepEqual(shape(gap.state), ["101: 0"]);
  assert.deepEqual(shape(addHead(gap.state, head(101n), LIMITS)), ["102: 0 1"]);
});

test("a missing predecessor shows a lost last message, which is a gap", () => {
  const next = flashblock(0, { number: 102n, metadata: { block_number: 102, prev_flashblock_id: "101-2" } });
  const { state, decisions } = play([...block(101n, 2), next]);
  assert.deepEqual(decisions, ["first", "next", "gap"]);
  assert.ok(isDegraded(state));
  assert.deepEqual(shape(play([flashblock(2)], state).state), ["101: 0 1 2", "102: 0"]);
});

test("a lost index 0 is a gap until the head passes its block", () => {
  const before = play(block(101n, 3));
  const lost = play(block(102n, 3).slice(1), before.state);
  assert.deepEqual(lost.decisions, ["gap", "gap"]);
  assert.ok(isDegraded(lost.state));
  const sealed = addHead(lost.state, head(101n), LIMITS);
  assert.deepEqual(shape(sealed), []);
  assert.ok(isDegraded(sealed), "nothing of block 102 can be shown");
  const next = play(block(103n, 2), sealed, head(101n));
  assert.deepEqual(next.decisions, ["early", "waiting"]);
  const passed = addHead(next.state, head(102n), LIMITS);
  assert.deepEqual(shape(passed), ["103: 0 1"]);
  assert.ok(!isDegraded(passed));
});

test("a lost index 0 of a feed without block numbers is a gap until the head passes its block", () => {
  const silent = { number: 102n, metadata: {} };
  const lost = play([flashblock(1, silent), flashblock(2, silent)], play(block(101n, 2)).state);
  assert.deepEqual(lost.decisions, ["gap", "gap"]);
  const passed = addHead(addHead(lost.state, head(101n), LIMITS), head(102n), LIMITS);
  assert.ok(!isDegraded(passed));
  const late = play([flashblock(2, { number: 101n, metadata: {} })], passed, head(102n));
  assert.deepEqual(late.decisions, ["old"], "its block was known before the head passed it");
});

test("after a block with fewer messages than usual the next block waits for the head", () => {
  const limits = { ...LIMITS, usualCount: 3 };
  const messages = [0, 1, 2].map((index) => flashblock(index, { number: 101n }));
  const next = [0, 1].map((index) => flashblock(index, { number: 102n }));
  const whole = play([...messages, ...next], emptySequence, head(100n), limits);
  assert.deepEqual(whole.decisions.slice(-2), ["firstOfNextBlock", "next"]);
  const short = play([...messages.slice(0, 2), ...next], emptySequence, head(100n), limits);
  assert.deepEqual(short.decisions.slice(-2), ["unconfirmed", "waiting"]);
  assert.deepEqual(shape(short.state), ["101: 0 1"]);
  assert.ok(isDegraded(short.state));
  const passed = addHead(short.state, head(101n), limits);
  assert.deepEqual(shape(passed), ["102: 0 1"]);
  assert.ok(!isDegraded(passed));
  const found = play(messages.slice(2), short.state, head(100n), limits);
  assert.deepEqual(shape(found.state), ["101: 0 1 2", "102: 0 1"], "a second feed brings the last message");
});

/** Blocks whose last message has the sealed block's hash. */
const sealedHashes = (number: bigint, parentHash?: Hash): readonly FeedMessage[] => [
  flashblock(0, { number, ...(parentHash && { parentHash }) }),
  flashblock(1, { number, blockHash: hashOf(number) }),
];

test("if last messages have sealed hashes, a block on another parent waits for the head", () => {
  const limits = { ...LIMITS, hasSealedHashes: true };
  const { state, decisions } = play([...sealedHashes(101n), ...sealedHashes(102n)], emptySequence, HEAD, limits);
  assert.deepEqual(decisions, ["first", "next", "firstOfNextBlock", "next"]);
  const other = play(sealedHashes(103n, hashOf(0xbad)), state, HEAD, limits);
  assert.deepEqual(other.decisions, ["unconfirmed", "waiting"]);
  assert.deepEqual(shape(other.state), ["101: 0 1", "102: 0 1"]);
  const followed = addHead(other.state, { number: 102n, hash: hashOf(0xbad) }, limits);
  assert.deepEqual(shape(followed), ["103: 0 1"]);
  assert.ok(!isDegraded(followed));
});

test("messages too far above the head count as missing until one is added", () => {
  const all = play([...block(101n, 1), flashblock(0, { number: 106n })]);
  assert.deepEqual(all.decisions, ["first", "tooFar"]);
  assert.ok(isDegraded(all.state));
  assert.ok(!isDegraded(play([flashblock(1)], all.state).state));
});

test("an index 0 that arrives before its parent is sealed is buffered, and added with the head", () => {
  const early = play(block(102n, 2));
  assert.deepEqual(early.decisions, ["early", "waiting"]);
  assert.deepEqual(shape(early.state), []);
  assert.deepEqual(shape(addHead(early.state, head(101n), LIMITS)), ["102: 0 1"]);
});

test("a block on a wrong parent is buffered, and added if the head returns to that parent", () => {
  const other = { number: 101n, parentHash: hashOf(0xbad) };
  const wrong = play([flashblock(0, other), flashblock(1, other)]);
  assert.deepEqual(wrong.decisions, ["wrongParent", "waiting"]);
  assert.deepEqual(shape(addHead(wrong.state, { number: 100n, hash: hashOf(0xbad) }, LIMITS)), ["101: 0 1"]);
});

test("a new payload replaces its block and all later messages, and the old payload is ignored from then on", () => {
  const payload = payloadOf(0xff);
  const { state, decisions } = play([
    ...block(101n, 3),
    ...block(102n, 1),
    flashblock(0, { payload, blockHash: hashOf(1) }),
    flashblock(1, { payload, blockHash: hashOf(2) }),
    flashblock(3),
    flashblock(0),
  ]);
  assert.deepEqual(decisions.slice(4), ["replacement", "next", "old", "old"]);
  assert.deepEqual(shape(state), ["101: 0 1"]);
  assert.equal(state.blocks[0]?.blockKey, payload);
});

const B = payloadOf(0xff);
/** A message of the second attempt at block 101. Its index 0 equals that of the first attempt. */
const again = (index: number, connection = 0): FeedMessage => ({
  ...flashblock(index, { payload: B, ...(index > 0 && { transactions: ["0x0b"] }) }),
  connection,
});

test("on one connection a block that starts again supersedes, also with an equal index 0", () => {
  const restarted = play([...block(101n, 3), again(0)]);
  assert.deepEqual(restarted.decisions, ["first", "next", "next", "replacement"]);
  assert.deepEqual([restarted.state.blocks[0]?.blockKey, shape(restarted.state)], [B, ["101: 0"]]);
  const goesOn = play([flashblock(3), again(1), again(2)], restarted.state);
  assert.deepEqual(goesOn.decisions, ["old", "next", "next"]);
  assert.ok(!isDegraded(goesOn.state));
  const lost = play([again(2)], restarted.state);
  assert.ok(isDegraded(lost.state), "a message that waits for an index is a gap");
});

test("another connection's attempt is a second opinion, and shown once it goes on and the first does not", () => {
  const second = play([...block(101n, 3), again(0, 1)]);
  assert.deepEqual(second.decisions.slice(3), ["undecided"]);
  assert.deepEqual([shape(second.state), isDegraded(second.state)], [["101: 0 1 2"], false]);
  const both = play([flashblock(3), again(1, 1), flashblock(4)], second.state);
  assert.deepEqual(both.decisions, ["next", "waiting", "next"]);
  assert.deepEqual([shape(both.state), isDegraded(both.state)], [["101: 0 1 2 3 4"], false]);
  const switched = play([again(2, 1), again(3, 1)], both.state);
  assert.deepEqual([switched.state.blocks[0]?.blockKey, shape(switched.state)], [B, ["101: 0 1 2 3"]]);
  const back = play([flashblock(5), flashblock(6)], switched.state);
  assert.deepEqual(shape(back.state), ["101: 0 1 2 3 4 5 6"], "the first attempt has gone on after all");
});

test("two attempts whose messages arrive out of order replace each other at most once", () => {
  // By its newest message, each of the attempts has gone on after the other one.
  const { state, decisions } = play([flashblock(0), again(1, 1), flashblock(2), flashblock(1), again(0, 1)]);
  assert.deepEqual(decisions, ["first", "gap", "gap", "next", "replacement"]);
  assert.deepEqual([state.blocks[0]?.blockKey, shape(state)], [B, ["101: 0 1"]]);
  assert.equal(state.buffered.length, 3, "the messages of the first attempt wait");
});

test("the first connection's restart confirms the second opinion at once", () => {
  const { state } = play([...block(101n, 3), again(0, 1)]);
  const confirmed = play([again(0), flashblock(3), again(1, 1)], state);
  assert.deepEqual([confirmed.state.blocks[0]?.blockKey, shape(confirmed.state)], [B, ["101: 0 1"]]);
});

test("a slower connection does not bring an abandoned attempt back", () => {
  const onSecond = (message: FeedMessage): FeedMessage => ({ ...message, connection: 1 });
  const attempt = block(101n, 3);
  const { state, decisions } = play([
    ...attempt,
    again(0),
    again(1),
    ...attempt.map(onSecond),
    again(0, 1),
    again(1, 1),
  ]);
  assert.deepEqual(decisions.slice(3), ["replacement", "next", "old", "old", "old", "duplicate", "duplicate"]);
  assert.equal(state.blocks[0]?.blockKey, B);
});

test("a message of an attempt without its index 0 is a gap", () => {
  assert.ok(isDegraded(play([...block(101n, 3), again(1, 1)]).state));
});

test("another message with a known index replaces it and all later messages, once", () => {
  const changed = flashblock(1, { blockHash: hashOf(0xabc), transactions: ["0x02"] });
  const { state, decisions } = play([...block(101n, 3), changed, flashblock(1)]);
  assert.deepEqual(decisions.slice(3), ["replacement", "old"]);
  assert.deepEqual(shape(state), ["101: 0 1"]);
  const first = flashblock(0, { blockHash: hashOf(0xdef), transactions: ["0x02"] });
  const anew = play([first, flashblock(0), changed], state);
  assert.deepEqual(anew.decisions, ["replacement", "old", "old"]);
  assert.deepEqual(shape(anew.state), ["101: 0"]);
});

test("messages at or below the head, or far above it, are discarded", () => {
  assert.deepEqual(play([flashblock(0, { number: 100n }), flashblock(3, { number: 97n })]).decisions, ["old", "old"]);
  const far = play([flashblock(0, { number: 106n }), flashblock(1, { number: 10_000n })]);
  assert.deepEqual(far.decisions, ["tooFar", "tooFar"]);
  assert.deepEqual(far.state.buffered, []);
});

test("a head removes blocks up to it and leaves the blocks above", () => {
  const { state } = play([...block(101n, 2), ...block(102n, 2), ...block(103n, 1)]);
  assert.deepEqual(shape(addHead(state, head(101n), LIMITS)), ["102: 0 1", "103: 0"]);
  assert.deepEqual(shape(addHead(state, head(103n), LIMITS)), []);
});

test("a reorganisation orphans the blocks on the old head", () => {
  const { state } = play(block(101n, 2));
  const elsewhere = addHead(state, { number: 100n, hash: hashOf(0xbad) }, LIMITS);
  assert.deepEqual(shape(elsewhere), []);
  assert.deepEqual(shape(addHead(elsewhere, HEAD, LIMITS)), ["101: 0 1"]);
  const deep = addHead(state, { number: 90n, hash: hashOf(90) }, LIMITS);
  assert.deepEqual(shape(play(block(91n, 1), deep, head(90n)).state), ["91: 0"]);
});

test("the buffer is limited", () => {
  const wrong = Array.from({ length: 40 }, (_, at) =>
    flashblock(0, { payload: payloadOf(1_000 + at), parentHash: hashOf(0xbad), blockHash: hashOf(at) }),
  );
  assert.equal(play(wrong).state.buffered.length, 8);
  const waiting = Array.from({ length: 1_100 }, (_, at) => flashblock(1, { payload: payloadOf(2_000 + at) }));
  assert.equal(play(waiting).state.buffered.length, 1_024);
  const large = waiting.slice(0, 40).map((message) => ({ ...message, bytes: 1_000_000 }));
  assert.equal(play(large).state.buffered.length, 33, "32 MiB");
});

test("any order of two blocks' messages, each perhaps twice, ends in the same state", () => {
  const all = [...block(101n, 5), ...block(102n, 5)];
  const orders = fc.shuffledSubarray([...all, ...all], { minLength: all.length * 2, maxLength: all.length * 2 });
  fc.assert(
    fc.property(orders, (messages) => {
      const { state } = play(messages);
      assert.deepEqual(shape(state), ["101: 0 1 2 3 4", "102: 0 1 2 3 4"]);
      assert.deepEqual(state.buffered, []);
    }),
  );
});

test("two feeds that each lose messages are complete together", () => {
  const all = [...block(101n, 6), ...block(102n, 6)];
  const losses = fc.array(fc.constantFrom("a", "b", "both"), { minLength: all.length, maxLength: all.length });
  fc.assert(
    fc.property(losses, (arrivals) => {
      const messages = all.flatMap((message, at) => (arrivals[at] === "both" ? [message, message] : [message]));
      assert.deepEqual(shape(play(messages).state), ["101: 0 1 2 3 4 5", "102: 0 1 2 3 4 5"]);
    }),
  );
});
