import type { Data, Hash } from "../ethereum/hex.ts";
import type { FeedMessage } from "./feedMessage.ts";
import type { MessageHashes } from "./flashblockHash.ts";

/** One pending block with its messages 0, 1, 2 and so on, without gaps. */
export interface BlockMessages {
  readonly number: bigint;
  readonly blockKey: Data;
  readonly parentHash: Hash;
  readonly messages: readonly FeedMessage[];
}

/**
 * The effect of a message (docs/reference/flashblocks.md, Order of messages). It is a label value of the metric.
 * The first four change `blocks`. The next six are buffered, because they may fit later. The others are discarded.
 */
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
  /** Another copy of the message is being executed, or another connection's attempt at the block is shown. */
  | "undecided"
  | "duplicate"
  /** Another copy of the message is verified. */
  | "conflict"
  /** Its hash is not that of its own header. */
  | "wrongHash"
  | "old"
  | "tooFar"
  | "tooLarge";

export interface BufferedMessage {
  readonly message: FeedMessage;
  readonly decision: Decision;
}

/** A connection has begun to send the messages of a block. */
export interface FeedBlockStart {
  readonly connection: number;
  readonly blockKey: Data;
}

/** A message that was discarded for its hash. Its place is a gap until another copy fills it. */
export interface DiscardedPlace {
  readonly blockKey: Data;
  readonly index: number;
  readonly number: bigint;
}

/** The messages of all connections of one feed, in one order. It is immutable. */
export interface SequenceState {
  /** Ascending, without gaps, all above the head. A late message extends its own block. */
  readonly blocks: readonly BlockMessages[];
  /** Messages that are out of order, too early, or on a parent that is not canonical. */
  readonly buffered: readonly BufferedMessage[];
  /** Messages that were replaced. A slower connection must not bring them back. */
  readonly superseded: readonly FeedMessage[];
  /** In order of time. It shows which block a connection has abandoned for another. */
  readonly starts: readonly FeedBlockStart[];
  /** Places above the head whose message was discarded. */
  readonly discarded: readonly DiscardedPlace[];
  /** Number of messages that have arrived. */
  readonly received: number;
  /** Keys of the newest blocks at or below the head. */
  readonly passed: readonly Data[];
  /** Whether a block has begun. From then on, a block without its index 0 is a gap. */
  readonly hasBegun: boolean;
  /** Whether messages too far above the head were discarded since the newest message that was added. */
  readonly hasDropped: boolean;
  /** Number of messages that were discarded for their hash. */
  readonly wrongHashes: number;
}

/** The result of a message's execution. `open`: it still runs, or it shows nothing about the message. */
export type Verdict = "verified" | "wrong" | "open";

export interface SequenceLimits {
  /** Limit of blocks above the head. */
  readonly maxDepth: number;
  /** The least number of messages that the newest complete blocks had. Infinite until one is known. Default: no number is compared. */
  readonly usualCount?: number | undefined;
  /** A block's last message has the hash of the sealed block. Most producers send hashes of unfinished headers. Default: no. */
  readonly hasSealedHashes?: boolean;
  /** Present: each message of this chain has the hash of its own header, so that other messages are discarded. */
  readonly trueHashes?: MessageHashes | undefined;
  /** Returns the base fee of the block after this one. `undefined`: the chain's rule is not known. */
  readonly baseFeeAfter?: ((block: BlockMessages) => bigint | undefined) | undefined;
  /** Decides between two copies of a message that differ. Default: the newer one replaces the other. */
  readonly verdictOf?: ((message: FeedMessage) => Verdict) | undefined;
}

export const emptySequence: SequenceState = {
  blocks: [],
  buffered: [],
  superseded: [],
  starts: [],
  discarded: [],
  received: 0,
  passed: [],
  hasBegun: false,
  hasDropped: false,
  wrongHashes: 0,
};

/** Whether a message was discarded that would extend a block. */
export const lacksDiscarded = (state: SequenceState, block: BlockMessages): boolean =>
  state.discarded.some(({ blockKey, index }) => blockKey === block.blockKey && index >= block.messages.length);

/** Returns a message's block number. A message without it has that of its block's first message. */
export const numberOfMessage = (state: SequenceState, message: FeedMessage): bigint | undefined =>
  message.environment?.number ??
  state.blocks.find((block) => block.blockKey === message.blockKey)?.number ??
  state.buffered.find((other) => other.message.blockKey === message.blockKey && other.message.environment)?.message
    .environment?.number ??
  message.number;
