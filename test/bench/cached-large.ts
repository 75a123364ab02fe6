import { compareCached } from "./compareCached.ts";
import type { BenchOptions, BenchResult } from "./result.ts";

export const bench = (options: BenchOptions): Promise<BenchResult> =>
  compareCached(
    { claim: "12 MB of logs from memory: at least 0.5, and loopP99Ms below 20", bytes: 12_000_000, connections: 4 },
    options,
  );
