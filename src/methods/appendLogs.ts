const CLOSE = 0x5d;
const COMMA = Buffer.from(",");

const isEmptyList = (bytes: Uint8Array): boolean => bytes.length === 2;

const tail = (logs: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([...logs.flatMap((log, index) => (index === 0 ? [log] : [COMMA, log])), Uint8Array.of(CLOSE)]);

async function* appendToStream(
  list: AsyncIterable<Uint8Array>,
  logs: readonly Uint8Array[],
): AsyncGenerator<Uint8Array> {
  let last: Uint8Array | undefined;
  for await (const chunk of list) {
    if (chunk.length === 0) {
      continue;
    }
    if (last !== undefined) {
      yield last;
    }
    last = chunk;
  }
  if (last === undefined) {
    return;
  }
  // Only long lists are streamed, so that this one has at least one log.
  yield last.subarray(0, -1);
  yield COMMA;
  yield tail(logs);
}

/** Appends logs to a JSON list; each of `logs` is one JSON text. */
export const appendLogs = (
  list: Uint8Array | AsyncIterable<Uint8Array>,
  logs: readonly Uint8Array[],
): Uint8Array | AsyncIterable<Uint8Array> => {
  if (logs.length === 0) {
    return list;
  }
  if (!(list instanceof Uint8Array)) {
    return appendToStream(list, logs);
  }
  const open = list.subarray(0, -1);
  return Buffer.concat(isEmptyList(list) ? [open, tail(logs)] : [open, COMMA, tail(logs)]);
};
