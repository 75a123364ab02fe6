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

/**
 * The logs' own bytes joined by commas, without brackets, in memory of their own (a slice would hold the whole answer).
 * A log that came without `blockTimestamp` gets it from `timestamps`, before its closing brace.
 */
export const joinLogs = (
  logs: readonly ScannedLog[],
  timestamps: ReadonlyMap<string, string> = new Map(),
): Uint8Array => {
  const additions = logs.map(({ timed, hash }) => {
    const timestamp = timed ? undefined : timestamps.get(hash);
    return timestamp === undefined ? "" : `,"blockTimestamp":"${timestamp}"}`;
  });
  // An addition brings its own closing brace.
  const size = logs.reduce(
    (sum, { start, end }, at) => sum + end - start + Math.max(0, (additions[at] ?? "").length - 1) + 1,
    0,
  );
  const joined = Buffer.allocUnsafeSlow(Math.max(0, size - 1));
  let at = 0;
  for (let first = 0; first < logs.length; ) {
    const start = logs[first];
    if (start === undefined) break;
    if (first > 0) joined[at++] = COMMA;
    let last = first;
    let end = start;
    // Logs that lie side by side are copied as one.
    for (let next = logs[last + 1]; additions[last] === "" && next !== undefined; next = logs[last + 1]) {
      if (next.text !== end.text || next.start !== end.end + 1 || end.text[end.end] !== COMMA) break;
      end = next;
      last++;
    }
    const addition = additions[last] ?? "";
    at += start.text.copy(joined, at, start.start, addition === "" ? end.end : end.end - 1);
    if (addition !== "") at += joined.write(addition, at, "latin1");
    first = last + 1;
  }
  return joined;
};
