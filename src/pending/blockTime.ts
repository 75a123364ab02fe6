import type { Heads } from "../chain/heads.ts";

const SPAN_BLOCKS = 64n;
const FAST_SPAN_BLOCKS = 10n;
/** Ten blocks of 200 ms share two or three whole seconds; ten of a second do not. */
const FAST_SPAN_SECONDS = 3n;

/** Mean of the newest blocks; undefined until the ring holds a few. Never below 200 ms, the fastest known. */
export const measureBlockTimeMs = (heads: Heads): number | undefined => {
  const { latest, oldest } = heads;
  const span = latest.number - oldest < SPAN_BLOCKS ? latest.number - oldest : SPAN_BLOCKS;
  const earlier = heads.at(latest.number - span);
  if (!earlier || span < 2n) return undefined;
  return Math.max((Number(latest.timestamp - earlier.timestamp) * 1000) / Number(span), 200);
};

/** The chain seals several times a second now, or says its time in milliseconds (flashblocks.md 0.1). */
export const isSealingFast = (heads: Heads): boolean => {
  if (heads.header(heads.latest.number)?.timestampMs !== undefined) return true;
  const earlier = heads.at(heads.latest.number - FAST_SPAN_BLOCKS);
  return earlier !== undefined && heads.latest.timestamp - earlier.timestamp <= FAST_SPAN_SECONDS;
};
