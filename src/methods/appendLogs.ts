const CLOSE = 0x5d;
const COMMA = Buffer.from(",");

const isEmptyList = (bytes: Uint8Array): boolean => bytes.length === 2;

const tail = (logs: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([...logs.flatMap((log, index) => (index === 0 ? [log] : [COMMA, log])), Uint8Array.of(CLOSE)]);

async function* appendToStream(
  list: AsyncIterable<Uint8Array>,
  logs: readonly Uint8Array[],
): AsyncGenerator<Uint8Array> {
  let held: Uint8Array | undefined;
  for await (const chunk of list) {
    if (chunk.length === 0) continue;
    if (held !== undefined) yield held;
    held = chunk;
  }
  if (held === undefined) return;
  // A streamed list is never empty: it is streamed because it is long.
  yield held.subarray(0, -1);
  yield COMMA;
  yield tail(logs);
}

/** A JSON list of logs with more behind it; each of `logs` is one JSON text. */
export const appendLogs = (
  list: Uint8Array | AsyncIterable<Uint8Array>,
  logs: readonly Uint8Array[],
): Uint8Array | AsyncIterable<Uint8Array> => {
  if (logs.length === 0) return list;
  if (!(list instanceof Uint8Array)) return appendToStream(list, logs);
  const open = list.subarray(0, -1);
  return Buffer.concat(isEmptyList(list) ? [open, tail(logs)] : [open, COMMA, tail(logs)]);
};
