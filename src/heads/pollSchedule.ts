/** When a node is asked for its newest block (architecture.md, heads). All times in `nowMs` milliseconds. */
export interface PollSchedule {
  readonly blockTimeMs: number;
  /** When somebody last asked for anything of the chain. */
  readonly touchedMs: number;
  readonly polledMs: number;
  /** When this node's newest block was first seen. */
  readonly newHeadMs: number;
  /** The last poll that found a block was the first one after it was due: it may have been there for a while. */
  readonly foundAtOnce: boolean;
  /** Headers come over a WebSocket; when the last one came. */
  readonly pushedMs: number | undefined;
  /** Pending blocks are the sealed ones, so each sealed block counts. */
  readonly native: boolean;
  readonly failing: boolean;
}

const IDLE_AFTER_MS = 30_000;
const MIN_STEP_MS = 250;
/** A block that comes just after a poll is to be served within a second, the poll that finds it included. */
const MAX_STEP_MS = 900;
const FAILING_STEP_MS = 1_000;
const MIN_NATIVE_STEP_MS = 100;
const PUSH_MIN_SILENCE_MS = 5_000;
const PUSH_SILENT_BLOCKS = 3;

export const isIdle = (touchedMs: number, nowMs: number): boolean => nowMs - touchedMs >= IDLE_AFTER_MS;

const stepMs = ({ blockTimeMs, native, failing }: PollSchedule): number => {
  if (failing) {
    return FAILING_STEP_MS;
  }
  return native
    ? Math.max(MIN_NATIVE_STEP_MS, Math.min(blockTimeMs, MAX_STEP_MS))
    : Math.min(Math.max(blockTimeMs / 4, MIN_STEP_MS), MAX_STEP_MS);
};

export const nextPollMs = (rhythm: PollSchedule, nowMs: number): number => {
  const { blockTimeMs, polledMs, newHeadMs, pushedMs } = rhythm;
  const silenceMs = Math.max(PUSH_SILENT_BLOCKS * blockTimeMs, PUSH_MIN_SILENCE_MS);
  if (pushedMs !== undefined && nowMs - pushedMs < silenceMs) {
    return pushedMs + silenceMs;
  }
  const step = stepMs(rhythm);
  if (isIdle(rhythm.touchedMs, nowMs)) {
    return polledMs + Math.max(blockTimeMs, step);
  }
  // Found at once means that blocks come earlier than we look: look half a step earlier, until one poll finds nothing.
  const dueMs = newHeadMs + blockTimeMs - (rhythm.foundAtOnce ? step / 2 : 0);
  return Math.max(dueMs, polledMs + step);
};
