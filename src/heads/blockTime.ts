import type { Heads } from "../core/heads.ts";

const DEFAULT_BLOCK_TIME_MS = 2_000;
const MIN_BLOCK_TIME_MS = 100;
const MAX_BLOCK_TIME_MS = 12_000;
const MEASURED_BLOCKS = 64n;

/** Measures the block time over many blocks, in ms, because timestamps are whole seconds and several blocks may share one. */
export const measuredBlockTimeMs = (heads: Heads | undefined): number => {
  const { latest } = heads ?? {};
  const number = latest && latest.number - MEASURED_BLOCKS;
  const first = latest && heads?.at(number !== undefined && number > heads.oldest ? number : heads.oldest);
  if (!first || !latest || latest.number === first.number) {
    return DEFAULT_BLOCK_TIME_MS;
  }
  const averageMs = (Number(latest.timestamp - first.timestamp) * 1000) / Number(latest.number - first.number);
  return Math.min(Math.max(averageMs, MIN_BLOCK_TIME_MS), MAX_BLOCK_TIME_MS);
};
