import { compareLogs } from "./support/compareLogs.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

export const bench = ({ short }: BenchOptions): Promise<BenchResult> =>
  compareLogs("12 MB of logs from the cache, against a bare server sending the same bytes", 12_000_000, short ? 5 : 31);
