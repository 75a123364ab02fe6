import type { Clock } from "../core/clock.ts";
import type { Heads, RingBlock } from "../core/heads.ts";

/** The input of a node's poll schedule for its newest block (docs/architecture.md, Heads). Times are `performance.now()` ms. */
export interface PollSchedule {
  readonly blockTimeMs: number;
  /** Time of the last client request to this chain. */
  readonly lastRequestMs: number;
  readonly polledMs: number;
  /** Time when this node's newest block was first received. */
  readonly newHeadMs: number;
  /** The first poll after the due time returned a new block, so that the block may have existed earlier. */
  readonly foundByFirstPoll: boolean;
  /** Time of the last header from the node's WebSocket; undefined without one. */
  readonly pushedMs: number | undefined;
  /** Mode `native`: sealed blocks serve as pending blocks, so that each one must be read. */
  readonly native: boolean;
  /** The chain has a feed: its messages are compared with each sealed block. */
  readonly hasFeed: boolean;
}

const IDLE_AFTER_MS = 30_000;
const MIN_STEP_MS = 250;
/** A block that appears just after a poll must be served within a second, including the time of the next poll. */
const MAX_STEP_MS = 900;
const MIN_NATIVE_STEP_MS = 100;
/** A node of an idle chain gets up to 50 calls a minute: 30 polls, and those of finality and backfill. */
const IDLE_STEP_MS = 2_000;
/** Below this block time, linking each block costs more than 50 calls a minute. */
const FAST_BLOCK_MS = 1_500;
const PUSH_MIN_SILENCE_MS = 5_000;
const PUSH_SILENT_BLOCKS = 3;

const isIdle = (lastRequestMs: number, nowMs: number): boolean => nowMs - lastRequestMs >= IDLE_AFTER_MS;

const stepMs = ({ blockTimeMs, native }: PollSchedule): number =>
  native
    ? Math.max(MIN_NATIVE_STEP_MS, Math.min(blockTimeMs, MAX_STEP_MS))
    : Math.min(Math.max(blockTimeMs / 4, MIN_STEP_MS), MAX_STEP_MS);

const silenceMs = ({ blockTimeMs }: Pick<PollSchedule, "blockTimeMs">): number =>
  Math.max(PUSH_SILENT_BLOCKS * blockTimeMs, PUSH_MIN_SILENCE_MS);

/** Whether the node's WebSocket sends its heads. */
export const isPushed = (
  schedule: Pick<PollSchedule, "blockTimeMs" | "pushedMs">,
  nowMs: number,
): schedule is { readonly blockTimeMs: number; readonly pushedMs: number } =>
  schedule.pushedMs !== undefined && nowMs - schedule.pushedMs < silenceMs(schedule);

/** Whether each sealed block is read, also while nobody uses the chain. */
const needsEachBlock = ({ hasFeed, native }: Pick<PollSchedule, "hasFeed" | "native">): boolean => hasFeed && !native;

/** Whether the blocks between two polls are not read while nobody uses the chain. */
export const skipsBlocks = (schedule: Pick<PollSchedule, "blockTimeMs" | "hasFeed" | "native">): boolean =>
  schedule.blockTimeMs < FAST_BLOCK_MS && !needsEachBlock(schedule);

/** Returns the time of the next poll, in the unit of `nowMs`. */
export const nextPollMs = (schedule: PollSchedule, nowMs: number): number => {
  const { blockTimeMs, polledMs, newHeadMs } = schedule;
  if (isPushed(schedule, nowMs)) {
    return schedule.pushedMs + silenceMs(schedule);
  }
  const step = stepMs(schedule);
  if (isIdle(schedule.lastRequestMs, nowMs)) {
    return polledMs + Math.max(blockTimeMs, step, needsEachBlock(schedule) ? 0 : IDLE_STEP_MS);
  }
  // If the first poll finds a block, blocks appear before the polls: poll half a step earlier until one poll finds nothing.
  const dueMs = newHeadMs + blockTimeMs - (schedule.foundByFirstPoll ? step / 2 : 0);
  return Math.max(dueMs, polledMs + step);
};

/** The time of the last client request to a chain, and the pauses of its background tasks. A request ends the pauses of an idle chain. */
export class HeadActivity {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #lastRequestMs = Number.NEGATIVE_INFINITY;
  #waking = new AbortController();

  /** An abort of `signal` ends all pauses. */
  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  get lastRequestMs(): number {
    return this.#lastRequestMs;
  }

  get isIdle(): boolean {
    return isIdle(this.#lastRequestMs, this.#clock.nowMs());
  }

  /** Records a client request. */
  markActive(): void {
    const nowMs = this.#clock.nowMs();
    const wasIdle = isIdle(this.#lastRequestMs, nowMs);
    this.#lastRequestMs = nowMs;
    if (wasIdle) {
      this.wake();
    }
  }

  /** Ends all pauses. */
  wake(): void {
    this.#waking.abort();
    this.#waking = new AbortController();
  }

  async pause(forMs: number): Promise<void> {
    if (!this.#signal.aborted) {
      await this.#clock.sleep(forMs, this.#waking.signal);
    }
  }
}

const DEFAULT_BLOCK_TIME_MS = 2_000;
const MIN_BLOCK_TIME_MS = 100;
const MAX_BLOCK_TIME_MS = 12_000;
/** Timestamps are whole seconds. Over this number of blocks, the error of their average is at most 50 ms. */
const PART_BLOCKS = 20n;
const MEASURED_PARTS = 3;

const averageMs = (oldest: RingBlock, newest: RingBlock): number =>
  (Number(newest.timestamp - oldest.timestamp) * 1000) / Number(newest.number - oldest.number);

/** Measures the block time, by the fastest part of the newest blocks. A slower part may be older, or have a pause: polls would be late. */
export const measuredBlockTimeMs = (heads: Heads | undefined): number => {
  const timesMs: number[] = [];
  let newest = heads?.latest;
  for (let part = 0; heads !== undefined && newest !== undefined && part < MEASURED_PARTS; part++) {
    // A new ring has fewer blocks than a part.
    const oldest = heads.at(newest.number - PART_BLOCKS) ?? (part === 0 ? heads.at(heads.oldest) : undefined);
    if (oldest !== undefined && oldest.number < newest.number) {
      timesMs.push(averageMs(oldest, newest));
    }
    newest = oldest;
  }
  const fastestMs = timesMs.length === 0 ? DEFAULT_BLOCK_TIME_MS : Math.min(...timesMs);
  return Math.min(Math.max(fastestMs, MIN_BLOCK_TIME_MS), MAX_BLOCK_TIME_MS);
};
