import type { BlockId } from "../core/heads.ts";
import type { Data } from "../ethereum/hex.ts";
import { idleDeadlineMs } from "../feed/feedClient.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import { MessageHashes } from "../feed/flashblockHash.ts";
import { addHead, addMessage, isDegraded, reviewCopies } from "../feed/sequence.ts";
import { type BlockMessages, emptySequence, type SequenceLimits, type Verdict } from "../feed/sequenceState.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Passed } from "./reconcile.ts";

export interface FeedIntakeOptions {
  /** Label of metrics. */
  readonly chain: string;
  /** Limit of pending blocks above the head. */
  readonly maxDepth: number;
  readonly blockTimeMs: () => number;
  /** Returns the base fee of the block after this one. `undefined`: the chain's rule is not known. */
  readonly baseFeeAfter: (block: BlockMessages) => bigint | undefined;
  /** Returns the result of a message's execution. */
  readonly verdictOf: (message: FeedMessage) => Verdict;
  readonly metrics: Pick<Telemetry["metrics"], "feedMessages" | "feedGaps">;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

/** The share of a block time that may pass between a sealed block and the first message of the next. */
const BOUNDARY_SHARE = 1 / 4;
const MAX_COUNTED_GAPS = 64;
/** The number of messages may differ by one from block to block. */
const COMPARED_BLOCKS = 2;
/** After this number of blocks without a first message that has its own hash, the chain's hashes do not count as true any more. */
const MAX_WRONG_FIRSTS = 2;

/** Receives the messages of the feed above the head. Decides whether the feed is stale, and whether its blocks are complete. */
export class FeedIntake {
  readonly #options: FeedIntakeOptions;
  #sequence = emptySequence;
  /** When a message last extended the pending blocks. Its execution ends later. */
  #extendedAtMs: number | undefined;
  /** The time of the head above which the feed has nothing. Undefined if it has something. */
  #emptyAtMs: number | undefined;
  /** Keys of blocks whose gap was counted in the metric. */
  #countedGaps: readonly Data[] = [];
  /** The newest block whose last message may be lost. */
  #suspect: bigint | undefined;
  /** The numbers of messages of the newest complete blocks. */
  #counts: readonly number[] = [];
  readonly #hashes = new MessageHashes();
  /** A sealed block has shown that the hash of each message is that of its own header. */
  #hasTrueHashes = false;
  /** The newest sealed block that equals its messages has the hash of the last one. */
  #hasSealedHashes = false;
  /** Numbers of the newest blocks whose first message was discarded for its hash. */
  #wrongFirsts: ReadonlySet<bigint> = new Set();

  readonly #startedAtMs: number;

  constructor(options: FeedIntakeOptions) {
    this.#options = options;
    this.#startedAtMs = options.nowMs();
  }

  /** Ascending, without gaps, all above the head. */
  get blocks(): readonly BlockMessages[] {
    return this.#sequence.blocks;
  }

  /** Whether messages above the head are missing. */
  get isDegraded(): boolean {
    return isDegraded(this.#sequence);
  }

  /** Time since a message extended the pending blocks, or since the start. */
  get ageMs(): number {
    return this.#options.nowMs() - (this.#extendedAtMs ?? this.#startedAtMs);
  }

  /** The feed is stale three block times after its newest message, and a quarter of one after a head without a message above. */
  get isStale(): boolean {
    const { nowMs, blockTimeMs } = this.#options;
    const dueMs = (this.#extendedAtMs ?? Number.NEGATIVE_INFINITY) + idleDeadlineMs(blockTimeMs());
    const firstDueMs = (this.#emptyAtMs ?? Number.POSITIVE_INFINITY) + blockTimeMs() * BOUNDARY_SHARE;
    return Math.min(dueMs, firstDueMs) < nowMs();
  }

  /** Returns true if `blocks` changed, by this message or by buffered messages that fit now. */
  receive(message: FeedMessage, head: BlockId): boolean {
    const { chain, metrics, nowMs } = this.#options;
    const before = this.#sequence;
    const received = { ...message, receivedMs: nowMs() };
    const { state, decision } = addMessage(before, received, head, this.#limits);
    // A message that was buffered before may be discarded now.
    const isWrong = decision === "wrongHash";
    const wrongHashes = state.wrongHashes - before.wrongHashes - (isWrong ? 1 : 0);
    metrics.feedMessages.inc({ chain, decision });
    if (wrongHashes > 0) {
      metrics.feedMessages.inc({ chain, decision: "wrongHash" }, wrongHashes);
    }
    if (isWrong) {
      this.#reviewHashes(message);
    }
    if (decision === "gap" || (isWrong && isDegraded(state))) {
      this.#countGap(message.blockKey);
    }
    const parent = before.blocks.at(-1);
    if (decision === "unconfirmed" && parent) {
      this.#suspect = parent.number;
    }
    this.#sequence = state;
    const isExtended = state.blocks !== before.blocks;
    if (isExtended) {
      this.#extendedAtMs = nowMs();
      this.#wrongFirsts = new Set();
    }
    this.#noteEmpty();
    return isExtended;
  }

  /** Decides between two copies of a message once one was executed. Returns true if `blocks` changed. */
  review(head: BlockId): boolean {
    const before = this.#sequence;
    this.#sequence = reviewCopies(before, head, this.#limits);
    return this.#sequence.blocks !== before.blocks;
  }

  follow(head: BlockId): void {
    const before = this.#sequence;
    this.#sequence = addHead(before, head, this.#limits);
    // Messages that were buffered for this head are added now.
    if (this.#sequence.blocks.some((block) => !before.blocks.includes(block))) {
      this.#extendedAtMs = this.#options.nowMs();
    }
    this.#noteEmpty();
  }

  /** Takes blocks that are sealed now. The sealed block shows whether the last message was lost. */
  confirm(passed: readonly Passed[]): void {
    this.#learnHashes(passed);
    this.#learnCounts(passed);
    const sealed = passed.find(({ block }) => block.environment.number === this.#suspect);
    if (sealed) {
      this.#suspect = undefined;
    }
    if (sealed?.differences.includes("transactions")) {
      this.#countGap(sealed.block.newest.blockKey);
    }
  }

  /** A sealed block with the content of its messages shows whether their hashes are true. */
  #learnHashes(passed: readonly Passed[]): void {
    const equal = passed.findLast(({ differences }) => differences.length === 0);
    if (equal) {
      this.#hasTrueHashes = this.#hashes.isTrue(equal.block.parts.map(({ message }) => message));
      this.#hasSealedHashes = equal.block.newest.commitments.blockHash === equal.sealed?.hash;
    }
  }

  /** A block with fewer messages than each of these may lack its last ones. */
  #learnCounts(passed: readonly Passed[]): void {
    const complete = passed.filter(({ differences }) => !differences.includes("transactions"));
    this.#counts = [...this.#counts, ...complete.map(({ block }) => block.parts.length)].slice(-COMPARED_BLOCKS);
  }

  /** A fork may change the header, so no message has its own hash from then on. */
  #reviewHashes({ environment }: FeedMessage): void {
    if (environment === undefined) {
      return;
    }
    this.#wrongFirsts = new Set([...this.#wrongFirsts, environment.number]);
    if (this.#wrongFirsts.size >= MAX_WRONG_FIRSTS) {
      this.#hasTrueHashes = false;
      this.#wrongFirsts = new Set();
    }
  }

  get #limits(): SequenceLimits {
    const { maxDepth, baseFeeAfter, verdictOf } = this.#options;
    return {
      maxDepth,
      baseFeeAfter,
      usualCount: Math.min(...this.#counts),
      hasSealedHashes: this.#hasSealedHashes,
      trueHashes: this.#hasTrueHashes ? this.#hashes : undefined,
      verdictOf,
    };
  }

  /** A buffered message above the head shows that the feed has something, and only a later head ends such a gap. */
  #noteEmpty(): void {
    const isEmpty = this.#sequence.blocks.length === 0 && !this.isDegraded;
    this.#emptyAtMs = isEmpty ? (this.#emptyAtMs ?? this.#options.nowMs()) : undefined;
  }

  #countGap(blockKey: Data): void {
    if (this.#countedGaps.includes(blockKey)) {
      return;
    }
    this.#countedGaps = [...this.#countedGaps, blockKey].slice(-MAX_COUNTED_GAPS);
    this.#options.metrics.feedGaps.inc({ chain: this.#options.chain });
  }
}
