import type { BlockId } from "../core/heads.ts";
import { decideMessage, isAbandoned } from "./decideMessage.ts";
import type { FeedMessage } from "./feedMessage.ts";
import {
  type BlockMessages,
  type BufferedMessage,
  type Decision,
  lacksDiscarded,
  numberOfMessage,
  type SequenceLimits,
  type SequenceState,
} from "./sequenceState.ts";

const MAX_BUFFERED_MESSAGES = 1_024;
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
const MAX_WRONG_PARENTS = 8;
const MAX_SUPERSEDED = 64;
const MAX_PASSED = 16;
const MAX_STARTS = 64;
const MAX_DISCARDED = 64;

interface Step {
  readonly state: SequenceState;
  readonly decision: Decision;
}

/** Takes one message from any connection. The first copy of a message wins, so connections fill each other's gaps. Pure. */
export const addMessage = (
  before: SequenceState,
  received: FeedMessage,
  head: BlockId,
  limits: SequenceLimits,
): Step => {
  const message = { ...received, order: before.received + 1 };
  const state = noteStart({ ...before, received: message.order }, message);
  const decision = decideMessage(state, message, head, limits);
  const next = add(decision === "tooFar" ? { ...state, hasDropped: true } : state, { message, decision }, head, limits);
  const mayFit = next.blocks !== state.blocks || next.buffered.some((each) => each.decision === "undecided");
  return { decision, state: mayFit ? addBuffered(next, head, limits) : next };
};

const noteStart = (state: SequenceState, { blockKey, connection = 0 }: FeedMessage): SequenceState =>
  state.starts.some((each) => each.blockKey === blockKey && each.connection === connection)
    ? state
    : { ...state, starts: [...state.starts, { blockKey, connection }].slice(-MAX_STARTS) };

/** Decides buffered copies again, because the execution of another copy has ended. Pure. */
export const reviewCopies = (state: SequenceState, head: BlockId, limits: SequenceLimits): SequenceState =>
  state.buffered.some(({ decision }) => decision === "undecided") ? addBuffered(state, head, limits) : state;

/** Takes a new head. Removes blocks up to it. Buffers blocks on another parent, in case the head returns to it. Pure. */
export const addHead = (state: SequenceState, head: BlockId, limits: SequenceLimits): SequenceState => {
  const above = state.blocks.filter((block) => block.number > head.number);
  const [first] = above;
  const fits = first === undefined || (first.number === head.number + 1n && first.parentHash === head.hash);
  const orphans = fits ? [] : above.flatMap(({ messages }) => messages);
  const buffered = [...state.buffered, ...orphans.map((message) => withdrawn(message, "wrongParent"))];
  const below = state.blocks.filter((block) => block.number <= head.number).map(({ blockKey }) => blockKey);
  const passed = [...state.passed, ...below].slice(-MAX_PASSED);
  const discarded = state.discarded.filter(({ number }) => number > head.number);
  return addBuffered(
    { ...state, passed, discarded, blocks: fits ? above : [], buffered: limitBuffered(buffered) },
    head,
    limits,
  );
};

const MISSING: ReadonlySet<Decision> = new Set(["gap", "early", "unconfirmed"]);

/** Whether messages are missing: between the known blocks and a later message, or in the place of a discarded one. */
export const isDegraded = (state: SequenceState): boolean =>
  state.hasDropped || state.buffered.some(({ decision }) => MISSING.has(decision)) || lacksAnyDiscarded(state);

const lacksAnyDiscarded = (state: SequenceState): boolean =>
  state.blocks.some((block) => lacksDiscarded(state, block)) ||
  state.discarded.some(({ blockKey }) => !state.blocks.some((block) => block.blockKey === blockKey));

/**
 * Applies buffered messages until no more of them fit. Discards those that can never fit, and decides the others again. One of them
 * replaces a block at most: connections that contradict each other could replace each other's blocks without end.
 */
const addBuffered = (
  before: SequenceState,
  head: BlockId,
  limits: SequenceLimits,
  mayReplace = true,
): SequenceState => {
  const state = addFollowing(before, head, limits);
  for (const [position, { message }] of state.buffered.entries()) {
    const without = { ...state, buffered: state.buffered.toSpliced(position, 1) };
    const decision = decideMessage(without, message, head, limits);
    const isReplacement = decision === "replacement";
    if (!isBuffered(decision) && (mayReplace || !isReplacement)) {
      const added = add(without, { message, decision }, head, limits);
      return addBuffered(added, head, limits, mayReplace && !isReplacement);
    }
  }
  const buffered = state.buffered.map(({ message, decision: before }, position): BufferedMessage => {
    const without = { ...state, buffered: state.buffered.toSpliced(position, 1) };
    const decision = decideMessage(without, message, head, limits);
    // A message of an abandoned branch: its parent will not arrive, and nothing is missing.
    return { message, decision: before === "wrongParent" && decision === "early" ? before : decision };
  });
  return { ...state, buffered };
};

/**
 * Adds the buffered messages that directly follow the messages of a block. Deciding all messages after each of them
 * would take cubic time if messages arrive in reverse order.
 */
const addFollowing = (first: SequenceState, head: BlockId, limits: SequenceLimits): SequenceState => {
  let state = first;
  for (;;) {
    const { blocks, buffered } = state;
    const position = buffered.findIndex(({ message }) =>
      blocks.some(({ blockKey, messages }) => blockKey === message.blockKey && message.index === messages.length),
    );
    const message = buffered[position]?.message;
    if (message === undefined) {
      return state;
    }
    const without = { ...state, buffered: buffered.toSpliced(position, 1) };
    const decision = decideMessage(without, message, head, limits);
    if (isBuffered(decision)) {
      return state;
    }
    state = add(without, { message, decision }, head, limits);
  }
};

const BUFFERED: ReadonlySet<Decision> = new Set(["gap", "waiting", "wrongParent", "early", "unconfirmed", "undecided"]);
const isBuffered = (decision: Decision): boolean => BUFFERED.has(decision);

const add = (
  state: SequenceState,
  { message, decision }: BufferedMessage,
  head: BlockId,
  limits: SequenceLimits,
): SequenceState => {
  const next = { ...state, hasDropped: false };
  switch (decision) {
    case "next":
      return append(next, message);
    case "first":
    case "firstOfNextBlock":
      return begin(next, message);
    case "replacement":
      return replace(next, message, limits);
    case "wrongHash":
      return discard(state, message, head);
    default:
      return isBuffered(decision) ? buffer(state, message, decision, head) : state;
  }
};

const append = (state: SequenceState, message: FeedMessage): SequenceState => ({
  ...state,
  blocks: state.blocks.map((block) =>
    block.blockKey === message.blockKey ? { ...block, messages: [...block.messages, message] } : block,
  ),
});

const begin = (state: SequenceState, message: FeedMessage): SequenceState => {
  const { blockKey, environment } = message;
  if (!environment) {
    return state;
  }
  const { number, parentHash } = environment;
  const blocks = [...state.blocks, { number, blockKey, parentHash, messages: [message] }];
  return { ...state, hasBegun: true, blocks };
};

/**
 * Replaces a message. Removes all messages after it, because they were built on it. If its execution has shown that it is
 * wrong, they were not: then they stay.
 */
const replace = (state: SequenceState, message: FeedMessage, { verdictOf }: SequenceLimits): SequenceState => {
  const number = numberOfMessage(state, message) ?? 0n;
  const below = state.blocks.filter((block) => block.number < number);
  const replaced = state.blocks.find((block) => block.number === number);
  const old = replaced?.messages[message.index];
  const isRival = message.index === 0 && replaced?.blockKey !== message.blockKey;
  if (replaced && isRival && !isAbandoned(state, replaced.blockKey, message.blockKey)) {
    return switchBlock(state, message, replaced);
  }
  if (replaced && old?.blockKey === message.blockKey && verdictOf?.(old) === "wrong") {
    const messages = replaced.messages.with(message.index, message);
    const parentHash = message.environment?.parentHash ?? replaced.parentHash;
    const blocks = state.blocks.map((block) => (block === replaced ? { ...replaced, parentHash, messages } : block));
    return { ...state, superseded: [...state.superseded, old].slice(-MAX_SUPERSEDED), blocks };
  }
  const removed = replaced?.messages.slice(message.index) ?? [];
  const above = state.blocks.filter((block) => block.number > number).flatMap(({ messages }) => messages.slice(0, 1));
  const superseded = [...state.superseded, ...removed, ...above].slice(-MAX_SUPERSEDED);
  if (message.index === 0 || !replaced) {
    const discarded = state.discarded.filter((place) => place.blockKey !== replaced?.blockKey);
    return begin({ ...state, superseded, discarded, blocks: below }, message);
  }
  const messages = [...replaced.messages.slice(0, message.index), message];
  return { ...state, superseded, blocks: [...below, { ...replaced, messages }] };
};

/**
 * Shows the block of another connection, which has gone on. The messages of the block that was shown wait in the buffer, because
 * it may go on too.
 */
const switchBlock = (state: SequenceState, first: FeedMessage, shown: BlockMessages): SequenceState => {
  const below = state.blocks.filter((block) => block.number < shown.number);
  const others = state.blocks.filter((block) => block.number >= shown.number).flatMap(({ messages }) => messages);
  const rivals = others.map((message) => withdrawn(message, "undecided"));
  return begin({ ...state, blocks: below, buffered: limitBuffered([...state.buffered, ...rivals]) }, first);
};

/** Buffers a message that was shown. It is another object: if it is shown again, it is new to subscribers. */
const withdrawn = (message: FeedMessage, decision: Decision): BufferedMessage => ({
  message: { ...message },
  decision,
});

/**
 * Buffers a message. A message without a number counts as one of the block after the newest known block.
 * It is evicted when the head passes that number.
 */
const buffer = (state: SequenceState, message: FeedMessage, decision: Decision, head: BlockId): SequenceState => {
  const number = numberOfMessage(state, message) ?? (state.blocks.at(-1) ?? head).number + 1n;
  return { ...state, buffered: limitBuffered([...state.buffered, { message: { ...message, number }, decision }]) };
};

/** Limits the buffer: discards the oldest messages, and all but the newest payloads on a wrong parent. */
const limitBuffered = (messages: readonly BufferedMessage[]): readonly BufferedMessage[] => {
  const wrongParents = new Set(
    messages
      .filter(({ decision }) => decision === "wrongParent")
      .map(({ message }) => message.blockKey)
      .reverse(),
  );
  const discarded = new Set([...wrongParents].slice(MAX_WRONG_PARENTS));
  const newest = messages.filter(({ message }) => !discarded.has(message.blockKey)).slice(-MAX_BUFFERED_MESSAGES);
  let bytes = newest.reduce((sum, { message }) => sum + message.bytes, 0);
  let start = 0;
  for (; bytes > MAX_BUFFERED_BYTES; start++) {
    bytes -= newest[start]?.message.bytes ?? bytes;
  }
  return start === 0 ? newest : newest.slice(start);
};

const discard = (state: SequenceState, message: FeedMessage, head: BlockId): SequenceState => {
  const { blockKey, index } = message;
  const number = numberOfMessage(state, message) ?? (state.blocks.at(-1) ?? head).number + 1n;
  const discarded = [...state.discarded, { blockKey, index, number }].slice(-MAX_DISCARDED);
  return { ...state, discarded, wrongHashes: state.wrongHashes + 1 };
};
