import { compareCached, oneBlock } from "./support/compareCached.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

export const bench = (options: BenchOptions): Promise<BenchResult> =>
  compareCached(
    {
      ...oneBlock,
      claim: "a block from memory costs little more than node:http itself: at least 0.70",
      connections: 32,
    },
    options,
  );
