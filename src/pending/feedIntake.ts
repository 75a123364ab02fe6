import type { BlockId } from "../core/heads.ts";
import type { Data } from "../ethereum/hex.ts";
import { idleDeadlineMs } from "../feed/feedClient.ts";
import type { Flashblock } from "../feed/message.ts";
import { pauseBeforeMs } from "../feed/pace.ts";
import { follow, isDegraded, receive } from "../feed/sequence.ts";
import { type BlockMessages, emptySequence, type SequenceLimits } from "../feed/sequenceState.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Passed } from "./reconcile.ts";

export interface FeedIntakeOptions {
  /** Label of metrics. */
  readonly chain: string;
  /** Pending blocks at most. */
  readonly maxDepth: number;
  readonly blockTimeMs: () => number;
  readonly metrics: Pick<Telemetry["metrics"], "feedMessages" | "feedGaps" | "feedAgeSeconds">;
  /** Milliseconds of a clock that does not go back. */
  readonly now: () => number;
}

/** Between a sealed block and the first message of the next one, so much of a block time may pass. */
const BOUNDARY_SHARE = 1 / 4;
const MAX_COUNTED_GAPS = 64;
/** How far a pause before a block may exceed the usual one. */
const USUAL_PAUSE_SLACK = 1.25;

/** The feed paused for long after the last known message of this block. */
interface LongPause {
  readonly number: bigint;
  readonly pauseMs: number;
}

/** What the feed has brought above the head, and whether it keeps up. */
export class FeedIntake {
  readonly #options: FeedIntakeOptions;
  #sequence = emptySequence;
  #appliedAtMs: number | undefined;
  /** Since when nothing is known above the head. */
  #emptyAtMs: number | undefined;
  /** Payloads whose gap was counted. */
  #counted: readonly Data[] = [];
  /** The newest block whose last message may be lost. */
  #suspect: LongPause | undefined;
  /** The newest of those that turned out to be whole. */
  #harmless: LongPause | undefined;
  #usualPauseMs: number | undefined;

  constructor(options: FeedIntakeOptions) {
    this.#options = options;
  }

  /** Ascending, unbroken, all above the head. */
  get blocks(): readonly BlockMessages[] {
    return this.#sequence.blocks;
  }

  /** Messages are missing above the head. */
  get isDegraded(): boolean {
    return isDegraded(this.#sequence);
  }

  /** Since a message extended what is known; undefined before the first. */
  get quietMs(): number | undefined {
    return this.#appliedAtMs === undefined ? undefined : this.#options.now() - this.#appliedAtMs;
  }

  /** A message extended what is known within the deadline. */
  get isLive(): boolean {
    return this.#timeLeftMs >= 0;
  }

  /** The head has passed all that is known, and the next block's first message is late. */
  get isOverdue(): boolean {
    return this.#boundaryLeftMs < 0;
  }

  /** `isLive` or `isOverdue` changes after this time, if nothing arrives. Undefined: neither does. */
  get changesInMs(): number | undefined {
    const left = [this.#timeLeftMs, this.#boundaryLeftMs].filter((ms) => ms >= 0 && ms < Number.POSITIVE_INFINITY);
    return left.length === 0 ? undefined : Math.floor(Math.min(...left)) + 1;
  }

  get #timeLeftMs(): number {
    const { quietMs } = this;
    return quietMs === undefined ? Number.NEGATIVE_INFINITY : idleDeadlineMs(this.#options.blockTimeMs()) - quietMs;
  }

  get #boundaryLeftMs(): number {
    if (this.#emptyAtMs === undefined) return Number.POSITIVE_INFINITY;
    return this.#emptyAtMs + this.#options.blockTimeMs() * BOUNDARY_SHARE - this.#options.now();
  }

  /** True if the message, or what it released, changed `blocks`. */
  receive(message: Flashblock, head: BlockId): boolean {
    const { chain, metrics, now } = this.#options;
    const before = this.#sequence;
    const received = { ...message, receivedMs: now() };
    const { state, decision } = receive(before, received, head, this.#limits);
    metrics.feedMessages.inc({ chain, decision });
    if (decision === "gap") this.#countGap(message.payloadId);
    const parent = before.blocks.at(-1);
    if (decision === "unconfirmed" && parent) {
      this.#suspect = { number: parent.number, pauseMs: pauseBeforeMs(parent.messages, received) };
    }
    this.#sequence = state;
    const isApplied = state.blocks !== before.blocks;
    if (isApplied) this.#noteApplied();
    return isApplied;
  }

  follow(head: BlockId): void {
    const before = this.#sequence;
    const wasDegraded = this.isDegraded;
    this.#sequence = follow(before, head, this.#limits);
    const { blocks } = this.#sequence;
    // What was held for this head has come into its place.
    if (blocks.some((block) => !before.blocks.includes(block))) this.#noteApplied();
    // A head that ends a gap is a boundary like any other.
    if (wasDegraded && !this.isDegraded) this.#emptyAtMs = undefined;
    if (blocks.length === 0) this.#emptyAtMs ??= this.#options.now();
  }

  /** The head has passed these blocks: it shows whether a last message was lost. */
  confirm(passed: readonly Passed[]): void {
    const suspect = this.#suspect;
    const found = passed.find(({ block }) => block.environment.number === suspect?.number);
    if (!suspect || !found) return;
    this.#suspect = undefined;
    if (found.differences.includes("transactions")) this.#countGap(found.block.newest.payloadId);
    else this.#learnPause(suspect);
  }

  /** Two blocks in a row that were whole: such a pause is usual on this chain. */
  #learnPause(harmless: LongPause): void {
    const before = this.#harmless;
    this.#harmless = harmless;
    if (before?.number !== harmless.number - 1n) return;
    this.#usualPauseMs = Math.min(before.pauseMs, harmless.pauseMs) * USUAL_PAUSE_SLACK;
  }

  get #limits(): SequenceLimits {
    return { maxDepth: this.#options.maxDepth, usualPauseMs: this.#usualPauseMs };
  }

  measureAge(): void {
    const { quietMs } = this;
    const { chain, metrics } = this.#options;
    if (quietMs !== undefined) metrics.feedAgeSeconds.set({ chain }, quietMs / 1000);
  }

  #noteApplied(): void {
    this.#appliedAtMs = this.#options.now();
    this.#emptyAtMs = undefined;
  }

  #countGap(payload: Data): void {
    if (this.#counted.includes(payload)) return;
    this.#counted = [...this.#counted, payload].slice(-MAX_COUNTED_GAPS);
    this.#options.metrics.feedGaps.inc({ chain: this.#options.chain });
  }
}
