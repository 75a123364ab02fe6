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

const NONE = new Uint8Array();

/**
 * The logs' own bytes, each with a comma in front, so that what is kept needs only to be put side by side. In memory of their
 * own: a slice would hold the whole answer. A log that came without `blockTimestamp` gets it from `timestamps`.
 */
export const joinLogs = (
  logs: readonly ScannedLog[],
  timestamps: ReadonlyMap<string, string> = new Map(),
): Uint8Array => {
  if (logs.length === 0) return NONE;
  const additions = logs.map(({ timed, hash }) => {
    const timestamp = timed ? undefined : timestamps.get(hash);
    return timestamp === undefined ? "" : `,"blockTimestamp":"${timestamp}"}`;
  });
  // An addition brings its own closing brace.
  const added = additions.reduce((sum, { length }) => sum + Math.max(0, length - 1), 0);
  const size = logs.reduce((sum, { start, end }) => sum + end - start + 1, added);
  const joined = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (let first = 0; first < logs.length; ) {
    const start = logs[first];
    if (start === undefined) break;
    joined[at++] = COMMA;
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

const OPEN = Buffer.from("[");
const CLOSE = Buffer.from("]");

/** The JSON list of what `joinLogs` gave. */
export const formatList = (chunks: readonly Uint8Array[]): Uint8Array => {
  const [first, ...rest] = chunks.filter(({ length }) => length > 0);
  return Buffer.concat(first === undefined ? [OPEN, CLOSE] : [OPEN, first.subarray(1), ...rest, CLOSE]);
};

/** A large chunk is sent as it is, small ones are joined up to this: a write costs more than a copy. */
const WORTH_A_WRITE_BYTES = 64 * 1024;

/** The same, piece by piece. */
export async function* streamList(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let waiting: Uint8Array[] = [OPEN];
  let waitingBytes = 0;
  let isFirst = true;
  for await (const chunk of chunks) {
    if (chunk.length === 0) continue;
    const bytes = isFirst ? chunk.subarray(1) : chunk;
    isFirst = false;
    const isLarge = bytes.length >= WORTH_A_WRITE_BYTES / 2;
    if (!isLarge) {
      waiting.push(bytes);
      waitingBytes += bytes.length;
    }
    if (waiting.length > 0 && (isLarge || waitingBytes >= WORTH_A_WRITE_BYTES)) {
      yield Buffer.concat(waiting);
      waiting = [];
      waitingBytes = 0;
    }
    if (isLarge) yield bytes;
  }
  yield Buffer.concat([...waiting, CLOSE]);
}
