import type { BlockId } from "../core/heads.ts";
import type { PendingEnvironment } from "../core/view.ts";
import type { FeedMessage } from "./feedMessage.ts";
import {
  type BlockMessages,
  type Decision,
  numberOfMessage,
  type SequenceLimits,
  type SequenceState,
} from "./sequenceState.ts";

const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

const isSame = (a: FeedMessage, b: FeedMessage): boolean =>
  a.blockKey === b.blockKey &&
  a.index === b.index &&
  a.commitments.blockHash === b.commitments.blockHash &&
  a.commitments.gasUsed === b.commitments.gasUsed &&
  a.transactions.length === b.transactions.length &&
  a.transactions.every((transaction, index) => transaction === b.transactions[index]);

const isSuperseded = (state: SequenceState, message: FeedMessage): boolean =>
  state.superseded.some((old) => (old.index === 0 ? old.blockKey === message.blockKey : isSame(old, message)));

/**
 * Whether index 0 of a block above all known blocks is missing. Before the first block it is not:
 * the connection may have opened in the middle of a block.
 */
const isFirstLost = (
  { hasBegun, buffered, blocks }: SequenceState,
  { blockKey }: FeedMessage,
  number?: bigint,
): boolean => {
  const newest = blocks.at(-1)?.number;
  if (!hasBegun || (newest !== undefined && number !== undefined && number <= newest)) {
    return false;
  }
  return !buffered.some(({ message }) => message.index === 0 && message.blockKey === blockKey);
};

const isIncomplete = (state: SequenceState, block: BlockMessages): boolean =>
  state.buffered.some(({ message }) => message.blockKey === block.blockKey && message.index >= block.messages.length);

/** Whether the message names a predecessor in this block that was not received. */
const lacksPredecessor = (block: BlockMessages, { previous }: FeedMessage): boolean =>
  previous !== undefined && previous.number === block.number && previous.index >= block.messages.length;

/** Two copies differ. If hashes are true, both have their own hash, so that the builder has replaced the message. */
const decideCopy = (received: FeedMessage, { trueHashes, verdictOf }: SequenceLimits): Decision => {
  const verdict = trueHashes === undefined ? (verdictOf?.(received) ?? "wrong") : "wrong";
  switch (verdict) {
    case "verified":
      return "conflict";
    case "open":
      return "undecided";
    case "wrong":
      return "replacement";
  }
};

const decideKnownPayload = (block: BlockMessages, message: FeedMessage, limits: SequenceLimits): Decision => {
  const received = block.messages[message.index];
  if (received) {
    return isSame(received, message) ? "duplicate" : decideCopy(received, limits);
  }
  if (message.index > block.messages.length) {
    return "gap";
  }
  return block.messages.reduce((sum, { bytes }) => sum + bytes, message.bytes) > MAX_BLOCK_BYTES ? "tooLarge" : "next";
};

/** Whether the message is a block's first one with another key. Later messages have shown the key of the block. */
const hasSameFirst = ({ messages: [first, ...later] }: BlockMessages, message: FeedMessage): boolean =>
  first !== undefined && later.length > 0 && isSame(first, { ...message, blockKey: first.blockKey });

/** Whether the block before may have further messages. A message that names its predecessor has shown that it has none. */
const mayLackLast = (
  { messages }: BlockMessages,
  next: FeedMessage,
  { usualPauseMs, usualCount = 0 }: SequenceLimits,
): boolean =>
  next.previous === undefined && (messages.length < usualCount || endsInPause(messages, next, usualPauseMs));

const decideFirst = (
  state: SequenceState,
  message: FeedMessage & { readonly environment: PendingEnvironment },
  head: BlockId,
  limits: SequenceLimits,
): Decision => {
  const { number, parentHash } = message.environment;
  const replaced = state.blocks.find((block) => block.number === number);
  if (replaced && hasSameFirst(replaced, message)) {
    return "duplicate";
  }
  const parent = state.blocks.find((block) => block.number === number - 1n);
  if (number - 1n === head.number) {
    if (parentHash !== head.hash) {
      return "wrongParent";
    }
    return replaced ? "replacement" : "first";
  }
  if (!parent) {
    return "early";
  }
  if (isIncomplete(state, parent) || lacksPredecessor(parent, message)) {
    return "gap";
  }
  // The parent is of another branch, or its last message is lost.
  if (state.hasSealedHashes && parent.messages.at(-1)?.commitments.blockHash !== parentHash) {
    return "unconfirmed";
  }
  // The next head shows whether the parent is complete.
  if (mayLackLast(parent, message, limits)) {
    return "unconfirmed";
  }
  return replaced ? "replacement" : "firstOfNextBlock";
};

const APPLIED: ReadonlySet<Decision> = new Set(["first", "next", "firstOfNextBlock", "replacement"]);

/** Decides the effect of a message on the sequence (docs/reference/flashblocks.md, Order of messages). Changes nothing. */
export const decideMessage = (
  state: SequenceState,
  message: FeedMessage,
  head: BlockId,
  limits: SequenceLimits,
): Decision => {
  const decision = decidePlace(state, message, head, limits);
  if (limits.trueHashes === undefined || !APPLIED.has(decision)) {
    return decision;
  }
  const block = state.blocks.find(({ blockKey }) => blockKey === message.blockKey);
  const messages = [...(block?.messages.slice(0, message.index) ?? []), message];
  return limits.trueHashes.isTrue(messages) ? decision : "wrongHash";
};

const decidePlace = (state: SequenceState, message: FeedMessage, head: BlockId, limits: SequenceLimits): Decision => {
  const number = numberOfMessage(state, message);
  if (isSuperseded(state, message) || state.passed.includes(message.blockKey)) {
    return "old";
  }
  if (number !== undefined && number <= head.number) {
    return "old";
  }
  if (number !== undefined && number > head.number + BigInt(limits.maxDepth)) {
    return "tooFar";
  }
  if (state.buffered.some((other) => isSame(other.message, message))) {
    return "duplicate";
  }
  const block = state.blocks.find(({ blockKey }) => blockKey === message.blockKey);
  if (block) {
    return decideKnownPayload(block, message, limits);
  }
  const { environment } = message;
  if (!environment) {
    return isFirstLost(state, message, number) ? "gap" : "waiting";
  }
  return decideFirst(state, { ...message, environment }, head, limits);
};

/** A pause before the next block is suspicious if it is longer than each pause inside the block by this factor. */
const LONG_PAUSE_FACTOR = 1.75;

/** Returns NaN if a time is not known. */
const pauseMs = (before: FeedMessage | undefined, message: FeedMessage): number =>
  (message.receivedMs ?? Number.NaN) - (before?.receivedMs ?? Number.NaN);

/** Returns the time between the newest of a block's messages and the next message. */
export const pauseBeforeMs = (messages: readonly FeedMessage[], next: FeedMessage): number =>
  pauseMs(messages.at(-1), next);

/**
 * Whether the pause before the next block is long. A builder sends at a steady pace, so the block's last message may be lost.
 * `usualPauseMs` is the pause that this chain makes before each block.
 */
const endsInPause = (messages: readonly FeedMessage[], next: FeedMessage, usualPauseMs = 0): boolean => {
  const pausesMs = messages.slice(1).map((message, position) => pauseMs(messages[position], message));
  const longestMs = Math.max(0, ...pausesMs);
  // If the times are not known, or all messages arrived together, the pace is not known.
  return longestMs > 0 && pauseBeforeMs(messages, next) > Math.max(LONG_PAUSE_FACTOR * longestMs, usualPauseMs);
};
