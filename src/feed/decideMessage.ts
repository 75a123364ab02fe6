import type { BlockId } from "../core/heads.ts";
import type { PendingEnvironment } from "../core/view.ts";
import type { Data } from "../ethereum/hex.ts";
import type { FeedMessage } from "./feedMessage.ts";
import {
  type BlockMessages,
  type Decision,
  lacksDiscarded,
  numberOfMessage,
  type SequenceLimits,
  type SequenceState,
} from "./sequenceState.ts";

const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

/** Whether both extend their block in the same way. Their payloads may differ. */
const hasSameContent = (a: FeedMessage, b: FeedMessage): boolean =>
  a.index === b.index &&
  a.commitments.blockHash === b.commitments.blockHash &&
  a.commitments.gasUsed === b.commitments.gasUsed &&
  a.transactions.length === b.transactions.length &&
  a.transactions.every((transaction, index) => transaction === b.transactions[index]);

const isSame = (a: FeedMessage, b: FeedMessage): boolean => a.blockKey === b.blockKey && hasSameContent(a, b);

/** A first message stands for its whole block, unless another copy of it is shown. */
const isSuperseded = ({ superseded, blocks }: SequenceState, message: FeedMessage): boolean => {
  const isShown = blocks.some(({ blockKey }) => blockKey === message.blockKey);
  return superseded.some((old) =>
    old.index === 0 && !isShown ? old.blockKey === message.blockKey : isSame(old, message),
  );
};

/** Returns the buffered messages of a block that follow its first one without a gap. */
const following = ({ buffered }: SequenceState, first: FeedMessage): readonly FeedMessage[] => {
  const own = buffered.map(({ message }) => message).filter(({ blockKey }) => blockKey === first.blockKey);
  const messages = [first];
  for (let next: FeedMessage | undefined = first; next; ) {
    next = own.find(({ index }) => index === messages.length);
    messages.push(...(next ? [next] : []));
  }
  return messages;
};

/**
 * Whether an earlier message of the same block is missing. Before the first block none is: the connection may have opened in the
 * middle of a block. Of a block on another branch none is either, because it is not shown.
 */
const lacksEarlier = (state: SequenceState, { blockKey, index }: FeedMessage): boolean => {
  const first = state.buffered.find(({ message }) => message.index === 0 && message.blockKey === blockKey);
  if (first === undefined) {
    return state.hasBegun;
  }
  return first.decision === "undecided" && index > following(state, first.message).length;
};

/** Whether a message of the block is known to be missing. */
const lacksKnown = (state: SequenceState, block: BlockMessages): boolean =>
  lacksDiscarded(state, block) ||
  state.buffered.some(({ message }) => message.blockKey === block.blockKey && message.index >= block.messages.length);

/** Whether the message names a predecessor in this block that was not received. */
const lacksPredecessor = (block: BlockMessages, { previous }: FeedMessage): boolean =>
  previous !== undefined && previous.number === block.number && previous.index >= block.messages.length;

/** Whether the base fee of the next block does not follow from the gas of this one, so that messages of this one are missing. */
const hasOtherFee = (block: BlockMessages, { environment }: FeedMessage, { baseFeeAfter }: SequenceLimits): boolean => {
  const expected = baseFeeAfter?.(block);
  return expected !== undefined && environment !== undefined && environment.baseFeePerGas !== expected;
};

/** A producer whose hashes are those of sealed blocks names the last one as the parent. Another hash may be of another branch. */
const hasOtherHash = (
  block: BlockMessages,
  { environment }: FeedMessage,
  { hasSealedHashes = false }: SequenceLimits,
): boolean => hasSealedHashes && block.messages.at(-1)?.commitments.blockHash !== environment?.parentHash;

/**
 * A block is complete if the next one follows from it, and one of the two complete blocks before it had no more messages. A message
 * that names its predecessor needs no such number. Otherwise only the next head shows whether a message is missing.
 */
const completenessOf = (
  state: SequenceState,
  block: BlockMessages,
  next: FeedMessage,
  limits: SequenceLimits,
): "complete" | "incomplete" | "unknown" => {
  if (lacksKnown(state, block) || lacksPredecessor(block, next) || hasOtherFee(block, next, limits)) {
    return "incomplete";
  }
  const hasFewer = next.previous === undefined && block.messages.length < (limits.usualCount ?? 0);
  return hasFewer || hasOtherHash(block, next, limits) ? "unknown" : "complete";
};

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

/** Whether a connection has sent messages of one block, and then begun another one. */
export const isAbandoned = ({ starts }: SequenceState, blockKey: Data, laterKey: Data): boolean =>
  starts.some(
    (later, at) =>
      later.blockKey === laterKey &&
      starts.slice(0, at).some((before) => before.blockKey === blockKey && before.connection === later.connection),
  );

/** Whether the connection of a buffered message has begun the block that is shown after it. */
const isPassedOver = ({ blocks }: SequenceState, message: FeedMessage, number: bigint | undefined): boolean => {
  const first = blocks.find((block) => block.number === number)?.messages[0];
  return first !== undefined && first.connection === message.connection && orderOf(first) > orderOf(message);
};

const orderOf = (message: FeedMessage | undefined): number => message?.order ?? 0;

/** Whether another connection's block goes on while the one that is shown does not: two messages arrived, and none of the latter. */
const hasGoneOn = (state: SequenceState, shown: BlockMessages, first: FeedMessage): boolean => {
  const messages = following(state, first);
  const [before, newest] = messages.slice(-2);
  const shownOrders = state.blocks
    .filter(({ number }) => number >= shown.number)
    .flatMap(({ messages }) => messages.map(orderOf));
  const showsMore = messages.some((message, index) => {
    const known = shown.messages[index];
    return known === undefined || !hasSameContent(known, message);
  });
  // Later than all that is shown, in whatever order that arrived: else each of two blocks could replace the other, without end.
  return newest !== undefined && showsMore && orderOf(before) > Math.max(...shownOrders);
};

/**
 * A block begins again. On one connection the new attempt supersedes the old one. From another connection it is a second opinion:
 * the one that goes on is shown.
 */
const decideAgain = (state: SequenceState, shown: BlockMessages, message: FeedMessage): Decision =>
  isAbandoned(state, shown.blockKey, message.blockKey) || hasGoneOn(state, shown, message)
    ? "replacement"
    : "undecided";

const decideFirst = (
  state: SequenceState,
  message: FeedMessage & { readonly environment: PendingEnvironment },
  head: BlockId,
  limits: SequenceLimits,
): Decision => {
  const { number, parentHash } = message.environment;
  const shown = state.blocks.find((block) => block.number === number);
  const parent = state.blocks.find((block) => block.number === number - 1n);
  if (number - 1n === head.number) {
    if (parentHash !== head.hash) {
      return "wrongParent";
    }
    return shown ? decideAgain(state, shown, message) : "first";
  }
  if (!parent) {
    return "early";
  }
  switch (completenessOf(state, parent, message, limits)) {
    case "incomplete":
      return "gap";
    case "unknown":
      return "unconfirmed";
    case "complete":
      return shown ? decideAgain(state, shown, message) : "firstOfNextBlock";
  }
};

const ADDED: ReadonlySet<Decision> = new Set(["first", "next", "firstOfNextBlock", "replacement"]);

/** Decides the effect of a message on the sequence (docs/reference/flashblocks.md, Order of messages). Changes nothing. */
export const decideMessage = (
  state: SequenceState,
  message: FeedMessage,
  head: BlockId,
  limits: SequenceLimits,
): Decision => {
  const decision = decidePlace(state, message, head, limits);
  if (limits.trueHashes === undefined || !ADDED.has(decision)) {
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
  if (isPassedOver(state, message, number)) {
    return "old";
  }
  const { environment } = message;
  if (!environment) {
    return lacksEarlier(state, message) ? "gap" : "waiting";
  }
  return decideFirst(state, { ...message, environment }, head, limits);
};
