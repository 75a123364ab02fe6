import type { BlockId } from "../chain/heads.ts";
import type { Data } from "../chain/hex.ts";
import { idleDeadlineMs } from "../feed/client.ts";
import type { Flashblock } from "../feed/message.ts";
import { type BlockMessages, emptySequence, follow, isDegraded, receive } from "../feed/sequence.ts";
import type { Telemetry } from "../telemetry.ts";
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

/** What the feed has brought above the head, and whether it keeps up. */
export class FeedIntake {
  readonly #options: FeedIntakeOptions;
  #sequence = emptySequence;
  #appliedAtMs: number | undefined;
  /** Since when nothing is known above the head. */
  #emptyAtMs: number | undefined;
  /** Payloads whose gap was counted. */
  #counted: readonly Data[] = [];
  /** A block whose last message may be lost. */
  #unconfirmed: bigint | undefined;

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
    const { chain, maxDepth, metrics, now } = this.#options;
    const before = this.#sequence;
    const { state, decision } = receive(before, { ...message, receivedMs: now() }, head, { maxDepth });
    metrics.feedMessages.inc({ chain, decision });
    if (decision === "gap") this.#countGap(message.payloadId);
    if (decision === "unconfirmed") this.#unconfirmed = before.blocks.at(-1)?.number;
    this.#sequence = state;
    const isApplied = state.blocks !== before.blocks;
    if (isApplied) this.#noteApplied();
    return isApplied;
  }

  follow(head: BlockId): void {
    const before = this.#sequence;
    const wasDegraded = this.isDegraded;
    this.#sequence = follow(before, head, this.#options);
    const { blocks } = this.#sequence;
    // What was held for this head has come into its place.
    if (blocks.some((block) => !before.blocks.includes(block))) this.#noteApplied();
    // A head that ends a gap is a boundary like any other.
    if (wasDegraded && !this.isDegraded) this.#emptyAtMs = undefined;
    if (blocks.length === 0) this.#emptyAtMs ??= this.#options.now();
  }

  /** The head has passed these blocks: a last message that was missed is known to be lost now. */
  confirm(passed: readonly Passed[]): void {
    for (const { block, differences } of passed) {
      if (block.environment.number !== this.#unconfirmed || !differences.includes("transactions")) continue;
      this.#countGap(block.newest.payloadId);
    }
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
