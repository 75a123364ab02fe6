import type { Flashblock } from "./message.ts";

/** Longer than any pause inside the block by this factor, a pause before the next block is suspicious. */
const LONG_PAUSE_FACTOR = 1.75;

/** Not a number where times are not known. */
const pauseMs = (before: Flashblock | undefined, message: Flashblock): number =>
  (message.receivedMs ?? Number.NaN) - (before?.receivedMs ?? Number.NaN);

/** From the newest of a block's messages to this one. */
export const pauseBeforeMs = (messages: readonly Flashblock[], next: Flashblock): number =>
  pauseMs(messages.at(-1), next);

/** A builder sends at a steady pace: a long pause at a block's end may mean that its last message is lost. */
export const endsInPause = (messages: readonly Flashblock[], next: Flashblock, usualPauseMs = 0): boolean => {
  const pausesMs = messages.slice(1).map((message, position) => pauseMs(messages[position], message));
  const longestMs = Math.max(0, ...pausesMs);
  // Without times, or where all arrived together, nothing is known of the pace.
  return longestMs > 0 && pauseBeforeMs(messages, next) > Math.max(LONG_PAUSE_FACTOR * longestMs, usualPauseMs);
};
