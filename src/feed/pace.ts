import type { Flashblock } from "./message.ts";

/** A pause before the next block is suspicious if it is longer than each pause inside the block by this factor. */
const LONG_PAUSE_FACTOR = 1.75;

/** Returns NaN if a time is not known. */
const pauseMs = (before: Flashblock | undefined, message: Flashblock): number =>
  (message.receivedMs ?? Number.NaN) - (before?.receivedMs ?? Number.NaN);

/** Returns the time between the newest of a block's messages and the next message. */
export const pauseBeforeMs = (messages: readonly Flashblock[], next: Flashblock): number =>
  pauseMs(messages.at(-1), next);

/**
 * Whether the pause before the next block is long. A builder sends at a steady pace, so the block's last message may be lost.
 * `usualPauseMs` is the pause that this chain makes before each block.
 */
export const endsInPause = (messages: readonly Flashblock[], next: Flashblock, usualPauseMs = 0): boolean => {
  const pausesMs = messages.slice(1).map((message, position) => pauseMs(messages[position], message));
  const longestMs = Math.max(0, ...pausesMs);
  // If the times are not known, or all messages arrived together, the pace is not known.
  return longestMs > 0 && pauseBeforeMs(messages, next) > Math.max(LONG_PAUSE_FACTOR * longestMs, usualPauseMs);
};
