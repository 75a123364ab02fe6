import type { ScannedLog } from "./scanLogs.ts";

const COMMA = 0x2c;

const compare = (left: ScannedLog, right: ScannedLog): number => left.block - right.block || left.index - right.index;

/** Sorted by (block, logIndex), each log once. Two logs of one place in different blocks are a contradiction: undefined. */
export const orderLogs = (logs: readonly ScannedLog[]): readonly ScannedLog[] | undefined => {
  const ordered: ScannedLog[] = [];
  const isSorted = logs.every((log, at) => at === 0 || compare(logs[at - 1] ?? log, log) < 0);
  for (const log of isSorted ? logs : logs.toSorted(compare)) {
    const last = ordered.at(-1);
    if (last !== undefined && last.block === log.block) {
      if (last.hash !== log.hash) return undefined;
      if (last.index === log.index) continue;
    }
    ordered.push(log);
  }
  return ordered;
};

/** What `joinLogs` puts before the closing brace of a log, if anything. */
export type Addition = (log: ScannedLog) => string | undefined;

/** The logs' own bytes joined by commas, without brackets, in memory of their own (a slice would hold the whole answer). */
export const joinLogs = (logs: readonly ScannedLog[], addition: Addition = () => undefined): Uint8Array => {
  const added = logs.map((log) => addition(log) ?? "");
  const bytes = logs.reduce((sum, { start, end }, at) => sum + end - start + (added[at] ?? "").length + 1, 0);
  const joined = Buffer.allocUnsafeSlow(Math.max(0, bytes - 1));
  let at = 0;
  logs.forEach((log, which) => {
    if (which > 0) joined[at++] = COMMA;
    const extra = added[which] ?? "";
    const end = extra === "" ? log.end : log.end - 1;
    at += log.text.copy(joined, at, log.start, end);
    if (extra !== "") at += joined.latin1Write(`${extra}}`, at);
  });
  return joined;
};
