import type { Heads } from "../core/heads.ts";
import { isAbsent } from "../verification/jsonFields.ts";

const FAST_SPAN_BLOCKS = 10n;
/** Ten blocks of 200 ms share two or three whole seconds; ten blocks of 1 s do not. */
const FAST_SPAN_SECONDS = 3n;

/**
 * Whether the chain seals several blocks a second, or has timestamps in milliseconds
 * (docs/reference/flashblocks.md, Sub-second blocks).
 */
export const hasSubSecondBlocks = (heads: Heads): boolean => {
  if (!isAbsent(heads.header(heads.latest.number)?.timestampMs)) {
    return true;
  }
  const earlier = heads.at(heads.latest.number - FAST_SPAN_BLOCKS);
  return earlier !== undefined && heads.latest.timestamp - earlier.timestamp <= FAST_SPAN_SECONDS;
};
