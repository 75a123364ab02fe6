import { COMMA } from "../json/jsonBytes.ts";
import type { ScannedLog } from "./scanLogs.ts";

const compare = (left: ScannedLog, right: ScannedLog): number => left.block - right.block || left.index - right.index;

/**
 * Sorts logs by (block, logIndex) and removes duplicates.
 * Returns undefined if two logs have the same block number and different block hashes.
 */
export const orderLogs = (logs: readonly ScannedLog[]): readonly ScannedLog[] | undefined => {
  const ordered: ScannedLog[] = [];
  const isSorted = logs.every((log, at) => at === 0 || compare(logs[at - 1] ?? log, log) < 0);
  for (const log of isSorted ? logs : logs.toSorted(compare)) {
    const last = ordered.at(-1);
    if (last !== undefined && last.block === log.block) {
      if (last.hash !== log.hash) {
        return undefined;
      }
      if (last.index === log.index) {
        continue;
      }
    }
    ordered.push(log);
  }
  return ordered;
};

const NONE = new Uint8Array();

const isAdjacent = (log: ScannedLog, next: ScannedLog): boolean =>
  next.text === log.text && next.start === log.end + 1 && log.text[log.end] === COMMA;

/** Returns the members to add to a log that has no timestamp, with the closing brace; an empty string for none. */
const additionTo = (log: ScannedLog, timestamps: ReadonlyMap<string, string>): string => {
  const timestamp = log.hasTimestamp || timestamps.size === 0 ? undefined : timestamps.get(log.hash);
  return timestamp === undefined ? "" : `,"blockTimestamp":"${timestamp}"}`;
};

/** Bytes that are copied at once: adjacent logs, of which only the last one may have an addition. */
interface Run {
  readonly first: ScannedLog;
  readonly last: ScannedLog;
  readonly addition: string;
}

const runsOf = (logs: readonly ScannedLog[], timestamps: ReadonlyMap<string, string>): Run[] => {
  const runs: Run[] = [];
  let first: ScannedLog | undefined;
  logs.forEach((log, at) => {
    first ??= log;
    const addition = additionTo(log, timestamps);
    const next = logs[at + 1];
    if (addition !== "" || next === undefined || !isAdjacent(log, next)) {
      runs.push({ first, last: log, addition });
      first = undefined;
    }
  });
  return runs;
};

/**
 * Copies the logs' bytes, each with a comma in front, so that cached segments are joined by concatenation.
 * The result has memory of its own: a slice would retain the whole response.
 * A log without `blockTimestamp` gets it from `timestamps`.
 */
export const joinLogs = (
  logs: readonly ScannedLog[],
  timestamps: ReadonlyMap<string, string> = new Map(),
): Uint8Array => {
  if (logs.length === 0) {
    return NONE;
  }
  const runs = runsOf(logs, timestamps);
  // An addition contains its own closing brace.
  const size = runs.reduce(
    (sum, { first, last, addition }) => sum + 1 + last.end - first.start + Math.max(0, addition.length - 1),
    0,
  );
  const joined = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const { first, last, addition } of runs) {
    joined[at++] = COMMA;
    at += first.text.copy(joined, at, first.start, addition === "" ? last.end : last.end - 1);
    if (addition !== "") {
      at += joined.write(addition, at, "latin1");
    }
  }
  return joined;
};

const OPEN = Buffer.from("[");
const CLOSE = Buffer.from("]");

/** Joins results of `joinLogs` to one JSON list. */
export const formatList = (chunks: readonly Uint8Array[]): Uint8Array => {
  const [first, ...others] = chunks.filter(({ length }) => length > 0);
  return Buffer.concat(first === undefined ? [OPEN, CLOSE] : [OPEN, first.subarray(1), ...others, CLOSE]);
};

/** Small chunks are joined up to this size, because a write costs more than a copy. */
const MIN_WRITE_BYTES = 64 * 1024;

/** Streams the JSON list of `formatList`. */
export async function* streamList(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let waiting: Uint8Array[] = [OPEN];
  let waitingBytes = 0;
  let isFirst = true;
  for await (const chunk of chunks) {
    if (chunk.length === 0) {
      continue;
    }
    const bytes = isFirst ? chunk.subarray(1) : chunk;
    isFirst = false;
    const isLarge = bytes.length >= MIN_WRITE_BYTES / 2;
    if (!isLarge) {
      waiting.push(bytes);
      waitingBytes += bytes.length;
    }
    if (waiting.length > 0 && (isLarge || waitingBytes >= MIN_WRITE_BYTES)) {
      yield Buffer.concat(waiting);
      waiting = [];
      waitingBytes = 0;
    }
    if (isLarge) {
      yield bytes;
    }
  }
  yield Buffer.concat([...waiting, CLOSE]);
}
