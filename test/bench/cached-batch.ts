import { compareCached, oneBlock } from "./support/compareCached.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

/** One batch of 100 hits. `itemShare` is the CPU of one item, as a share of that of a single hit. */
export const bench = (options: BenchOptions): Promise<BenchResult> =>
  compareCached(
    {
      ...oneBlock,
      claim: "a batch of 100 blocks from memory costs little more than in node:http itself: at least 0.60",
      connections: 8,
      batch: 100,
    },
    options,
  );
