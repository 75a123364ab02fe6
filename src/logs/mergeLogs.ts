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

/** Index of the last log that can be copied together with the one at `first`: adjacent bytes without an addition. */
const lastAdjacent = (logs: readonly ScannedLog[], additions: readonly string[], first: number): number => {
  for (let last = first; ; last++) {
    const log = logs[last];
    const next = logs[last + 1];
    if (log === undefined || next === undefined || additions[last] !== "" || !isAdjacent(log, next)) {
      return last;
    }
  }
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
  const additions = logs.map(({ hasTimestamp: timed, hash }) => {
    const timestamp = timed ? undefined : timestamps.get(hash);
    return timestamp === undefined ? "" : `,"blockTimestamp":"${timestamp}"}`;
  });
  // An addition contains its own closing brace.
  const added = additions.reduce((sum, { length }) => sum + Math.max(0, length - 1), 0);
  const size = logs.reduce((sum, { start, end }) => sum + end - start + 1, added);
  const joined = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (let first = 0; first < logs.length; ) {
    const last = lastAdjacent(logs, additions, first);
    const start = logs[first];
    const end = logs[last];
    if (start === undefined || end === undefined) {
      break;
    }
    joined[at++] = COMMA;
    const addition = additions[last] ?? "";
    at += start.text.copy(joined, at, start.start, addition === "" ? end.end : end.end - 1);
    if (addition !== "") {
      at += joined.write(addition, at, "latin1");
    }
    first = last + 1;
  }
  return joined;
};

const OPEN = Buffer.from("[");
const CLOSE = Buffer.from("]");

/** Joins results of `joinLogs` to one JSON list. */
export const formatList = (chunks: readonly Uint8Array[]): Uint8Array => {
  const [first, ...rest] = chunks.filter(({ length }) => length > 0);
  return Buffer.concat(first === undefined ? [OPEN, CLOSE] : [OPEN, first.subarray(1), ...rest, CLOSE]);
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
