import { CODES, RpcError } from "./rpcError.ts";

/** Creates the error of a response above the limit. */
export const tooLarge = (maxBytes: number): RpcError =>
  new RpcError(CODES.RESPONSE_TOO_LARGE, `response is larger than ${maxBytes} bytes`);

/**
 * Reads the first chunk of a stream, so that a failure before the first byte is still an error response.
 * A later error breaks the connection, so that an incomplete response does not parse.
 * Returns the whole stream. Rejects, then or later, with `tooLarge` above `maxBytes`.
 */
export const readFirstChunk = async (
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<AsyncIterable<Uint8Array>> => {
  const iterator = stream[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next();
  let bytes = 0;
  const end = async (): Promise<IteratorReturnResult<undefined>> => {
    await iterator.return?.();
    return { done: true, value: undefined };
  };
  const counted = async (result: IteratorResult<Uint8Array>): Promise<IteratorResult<Uint8Array>> => {
    if (!result.done) {
      bytes += result.value.length;
    }
    if (bytes <= maxBytes) {
      return result;
    }
    await end();
    throw tooLarge(maxBytes);
  };
  first = await counted(first);
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    if (first === undefined) {
      return counted(await iterator.next());
    }
    const result = first;
    first = undefined;
    return result;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) };
};

/** Discards a stream that nobody will read. Reads one chunk, because a generator that never ran does not clean up. */
export const discardStream = async (stream: AsyncIterable<Uint8Array>): Promise<void> => {
  for await (const _ of stream) {
    return;
  }
};
