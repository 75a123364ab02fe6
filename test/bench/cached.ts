import { compareCached, oneBlock } from "./compareCached.ts";
import type { BenchOptions, BenchResult } from "./result.ts";

export const bench = (options: BenchOptions): Promise<BenchResult> =>
  compareCached(
    {
      ...oneBlock,
      claim: "a block from memory costs little more than node:http itself: at least 0.70",
      connections: 32,
    },
    options,
  );
