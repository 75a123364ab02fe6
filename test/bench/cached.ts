import { compareCached } from "./compareCached.ts";
import type { BenchOptions, BenchResult } from "./result.ts";

export const bench = (options: BenchOptions): Promise<BenchResult> =>
  compareCached(
    {
      claim: "a block from memory costs little more than node:http itself: at least 0.70",
      bytes: 1_500,
      connections: 32,
    },
    options,
  );
