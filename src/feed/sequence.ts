import type { BlockId } from "../core/heads.ts";
import type { Data, Hash } from "../ethereum/hex.ts";
import type { Flashblock, FlashblockBase } from "./message.ts";
import { endsInPause } from "./pace.ts";

/** One block that is being built, as its messages 0, 1, 2 ... without a hole. */
export interface BlockMessages {
  readonly number: bigint;
  readonly payloadId: Data;
  readonly parentHash: Hash;
  readonly messages: readonly Flashblock[];
}

/** What became of a message: a label of the metric. The first four change `blocks`; the next five are held, as they may fit later. */
export type Decision =
  | "first"
  | "next"
  | "firstOfNextBlock"
  | "replacement"
  | "gap"
  | "waiting"
  | "wrongParent"
  | "early"
  | "unconfirmed"
  | "duplicate"
  | "old"
  | "tooFar"
  | "tooLarge";

interface BufferedMessage {
  readonly message: Flashblock;
  readonly decision: Decision;
}

/** What is known of the feed, several sockets taken together. Immutable. */
export interface SequenceState {
  /** Ascending, unbroken, all above the head; the last one grows. */
  readonly blocks: readonly BlockMessages[];
  /** Out of order, too early, or on a parent that is not canonical here. */
  readonly buffered: readonly BufferedMessage[];
  /** Messages that were replaced: a slower socket must not bring them back. */
  readonly superseded: readonly Flashblock[];
  /** Payloads of the newest blocks that the head has passed. */
  readonly passed: readonly Data[];
  /** A block was begun: from now on a block without its index 0 is a gap. */
  readonly hasBegun: boolean;
  /** Messages too far above the head were dropped after the newest that was taken. */
  readonly hasDropped: boolean;
}

export interface SequenceLimits {
  /** Blocks above the head at most. */
  readonly maxDepth: number;
  /** This chain pauses so long before a block begins. Undefined: not more than inside of blocks. */
  readonly usualPauseMs?: number | undefined;
}

export const emptySequence: SequenceState = {
  blocks: [],
  buffered: [],
  superseded: [],
  passed: [],
  hasBegun: false,
  hasDropped: false,
};

const MAX_BUFFERED_MESSAGES = 1_024;
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
const MAX_WRONG_PARENTS = 8;
const MAX_SUPERSEDED = 64;
const MAX_PASSED = 16;
const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

const isSame = (a: Flashblock, b: Flashblock): boolean =>
  a.payloadId === b.payloadId &&
  a.index === b.index &&
  a.diff.blockHash === b.diff.blockHash &&
  a.diff.gasUsed === b.diff.gasUsed &&
  a.diff.transactions.length === b.diff.transactions.length &&
  a.diff.transactions.every((transaction, index) => transaction === b.diff.transactions[index]);

const isSuperseded = (state: SequenceState, message: Flashblock): boolean =>
  state.superseded.some((old) => (old.index === 0 ? old.payloadId === message.payloadId : isSame(old, message)));

/** Only index 0 says its number for certain; a later one has that of its payload, or what its metadata says. */
const numberOf = (state: SequenceState, message: Flashblock): bigint | undefined =>
  message.base?.blockNumber ??
  state.blocks.find((block) => block.payloadId === message.payloadId)?.number ??
  state.buffered.find((held) => held.message.payloadId === message.payloadId && held.message.base)?.message.base
    ?.blockNumber ??
  message.blockNumber;

/** A block above all that are known, whose index 0 has not come. Before the first block we may have joined in the middle. */
const isFirstLost = (
  { hasBegun, buffered, blocks }: SequenceState,
  { payloadId }: Flashblock,
  number?: bigint,
): boolean => {
  const newest = blocks.at(-1)?.number;
  if (!hasBegun || (newest !== undefined && number !== undefined && number <= newest)) return false;
  return !buffered.some(({ message }) => message.index === 0 && message.payloadId === payloadId);
};

const isIncomplete = (state: SequenceState, block: BlockMessages): boolean =>
  state.buffered.some(({ message }) => message.payloadId === block.payloadId && message.index >= block.messages.length);

/** The feed names the message it sent before this one, and we have not seen it: something between is lost. */
const hasLost = (block: BlockMessages, message: Flashblock): boolean => {
  if (message.previous === undefined) return false;
  const [number = "", index = ""] = message.previous.split("-");
  return BigInt(number) === block.number && Number(index) >= block.messages.length;
};

const decideKnown = (block: BlockMessages, message: Flashblock): Decision => {
  const known = block.messages[message.index];
  if (known) return isSame(known, message) ? "duplicate" : "replacement";
  if (message.index > block.messages.length) return "gap";
  return block.messages.reduce((sum, { bytes }) => sum + bytes, message.bytes) > MAX_BLOCK_BYTES ? "tooLarge" : "next";
};

const decideFirst = (
  state: SequenceState,
  message: Flashblock & { readonly base: FlashblockBase },
  head: BlockId,
  { usualPauseMs }: SequenceLimits,
): Decision => {
  const { blockNumber: number, parentHash } = message.base;
  const known = state.blocks.find((block) => block.number === number);
  const parent = state.blocks.find((block) => block.number === number - 1n);
  if (number - 1n === head.number) {
    if (parentHash !== head.hash) return "wrongParent";
    return known ? "replacement" : "first";
  }
  if (!parent) return "early";
  if (isIncomplete(state, parent) || hasLost(parent, message)) return "gap";
  // The head will show whether the block below is whole. A feed that names its predecessors has shown it by now.
  if (message.previous === undefined && endsInPause(parent.messages, message, usualPauseMs)) return "unconfirmed";
  return known ? "replacement" : "firstOfNextBlock";
};

/** What a message is, given what is known (flashblocks.md 1.7). Pure. */
const decide = (state: SequenceState, message: Flashblock, head: BlockId, limits: SequenceLimits): Decision => {
  const number = numberOf(state, message);
  if (isSuperseded(state, message) || state.passed.includes(message.payloadId)) return "old";
  if (number !== undefined && number <= head.number) return "old";
  if (number !== undefined && number > head.number + BigInt(limits.maxDepth)) return "tooFar";
  if (state.buffered.some((held) => isSame(held.message, message))) return "duplicate";
  const block = state.blocks.find(({ payloadId }) => payloadId === message.payloadId);
  if (block) return decideKnown(block, message);
  const { base } = message;
  if (!base) return isFirstLost(state, message, number) ? "gap" : "waiting";
  return decideFirst(state, { ...message, base }, head, limits);
};

const append = (state: SequenceState, message: Flashblock): SequenceState => ({
  ...state,
  blocks: state.blocks.map((block) =>
    block.payloadId === message.payloadId ? { ...block, messages: [...block.messages, message] } : block,
  ),
});

const begin = (state: SequenceState, message: Flashblock): SequenceState => {
  if (!message.base) return state;
  const { blockNumber: number, parentHash } = message.base;
  const { payloadId } = message;
  const blocks = [...state.blocks, { number, payloadId, parentHash, messages: [message] }];
  return { ...state, hasBegun: true, blocks };
};

/** Whatever followed what is replaced was built on it, and goes with it. */
const replace = (state: SequenceState, message: Flashblock): SequenceState => {
  const number = numberOf(state, message) ?? 0n;
  const kept = state.blocks.filter((block) => block.number < number);
  const replaced = state.blocks.find((block) => block.number === number);
  const gone = replaced?.messages.slice(message.index) ?? [];
  const later = state.blocks.filter((block) => block.number > number).flatMap(({ messages }) => messages.slice(0, 1));
  const superseded = [...state.superseded, ...gone, ...later].slice(-MAX_SUPERSEDED);
  if (message.index === 0 || !replaced) return begin({ ...state, superseded, blocks: kept }, message);
  const messages = [...replaced.messages.slice(0, message.index), message];
  return { ...state, superseded, blocks: [...kept, { ...replaced, messages }] };
};

/** The oldest goes first; of sequences on a wrong parent only the newest few stay. */
const boundBuffered = (held: readonly BufferedMessage[]): readonly BufferedMessage[] => {
  const wrong = new Set(
    held
      .filter(({ decision }) => decision === "wrongParent")
      .map(({ message }) => message.payloadId)
      .reverse(),
  );
  const dropped = new Set([...wrong].slice(MAX_WRONG_PARENTS));
  const kept = held.filter(({ message }) => !dropped.has(message.payloadId)).slice(-MAX_BUFFERED_MESSAGES);
  let bytes = kept.reduce((sum, { message }) => sum + message.bytes, 0);
  let start = 0;
  for (; bytes > MAX_BUFFERED_BYTES; start++) bytes -= kept[start]?.message.bytes ?? bytes;
  return start === 0 ? kept : kept.slice(start);
};

const HELD: ReadonlySet<Decision> = new Set(["gap", "waiting", "wrongParent", "early", "unconfirmed"]);
const isBuffered = (decision: Decision): boolean => HELD.has(decision);

/** A message that does not say its number is of the block after those that are known. It is forgotten when the head passes that. */
const hold = (state: SequenceState, message: Flashblock, decision: Decision, head: BlockId): SequenceState => {
  const blockNumber = numberOf(state, message) ?? (state.blocks.at(-1) ?? head).number + 1n;
  return { ...state, buffered: boundBuffered([...state.buffered, { message: { ...message, blockNumber }, decision }]) };
};

const apply = (state: SequenceState, message: Flashblock, decision: Decision, head: BlockId): SequenceState => {
  const taken = { ...state, hasDropped: false };
  switch (decision) {
    case "next":
      return append(taken, message);
    case "first":
    case "firstOfNextBlock":
      return begin(taken, message);
    case "replacement":
      return replace(taken, message);
    default:
      return isBuffered(decision) ? hold(state, message, decision, head) : state;
  }
};

/** Takes what was held and fits now, until nothing more does; forgets what can never fit; judges the rest anew. */
const applyBuffered = (state: SequenceState, head: BlockId, limits: SequenceLimits): SequenceState => {
  for (const [position, { message }] of state.buffered.entries()) {
    const without = { ...state, buffered: state.buffered.toSpliced(position, 1) };
    const decision = decide(without, message, head, limits);
    if (!isBuffered(decision)) return applyBuffered(apply(without, message, decision, head), head, limits);
  }
  const judged = state.buffered.map(({ message, decision: before }, position): BufferedMessage => {
    const decision = decide({ ...state, buffered: state.buffered.toSpliced(position, 1) }, message, head, limits);
    // On a branch that was given up: nothing leads to it, and nothing is missing.
    return { message, decision: before === "wrongParent" && decision === "early" ? before : decision };
  });
  return { ...state, buffered: judged };
};

export interface Step {
  readonly state: SequenceState;
  readonly decision: Decision;
}

/** One message from any socket. The first of equal ones wins, so sockets fill each other's gaps. Pure. */
export const receive = (state: SequenceState, message: Flashblock, head: BlockId, limits: SequenceLimits): Step => {
  const decision = decide(state, message, head, limits);
  const taken = apply(decision === "tooFar" ? { ...state, hasDropped: true } : state, message, decision, head);
  return { decision, state: taken.blocks === state.blocks ? taken : applyBuffered(taken, head, limits) };
};

/** A new head: what it passed goes; what stood on another parent is held, in case the head comes back to it. Pure. */
export const follow = (state: SequenceState, head: BlockId, limits: SequenceLimits): SequenceState => {
  const above = state.blocks.filter((block) => block.number > head.number);
  const [first] = above;
  const fits = first === undefined || (first.number === head.number + 1n && first.parentHash === head.hash);
  const orphans = fits ? [] : above.flatMap(({ messages }) => messages);
  const held = [
    ...state.buffered,
    ...orphans.map((message): BufferedMessage => ({ message, decision: "wrongParent" })),
  ];
  const below = state.blocks.filter((block) => block.number <= head.number).map(({ payloadId }) => payloadId);
  const passed = [...state.passed, ...below].slice(-MAX_PASSED);
  return applyBuffered({ ...state, passed, blocks: fits ? above : [], buffered: boundBuffered(held) }, head, limits);
};

const MISSING: ReadonlySet<Decision> = new Set(["gap", "early", "unconfirmed"]);

/** Something later is known, or was dropped, and what leads to it is missing. */
export const isDegraded = ({ buffered, hasDropped }: SequenceState): boolean =>
  hasDropped || buffered.some(({ decision }) => MISSING.has(decision));
