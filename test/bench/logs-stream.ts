import { compareLogs } from "./support/compareLogs.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

export const bench = ({ short }: BenchOptions): Promise<BenchResult> =>
  compareLogs("100 MB of logs, streamed, against a bare server sending the same bytes", 100_000_000, short ? 3 : 11);
