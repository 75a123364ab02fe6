import { CODES, RpcError } from "./rpcError.ts";

export const tooLarge = (maxBytes: number): RpcError =>
  new RpcError(CODES.RESPONSE_TOO_LARGE, `response is larger than ${maxBytes} bytes`);

/**
 * The stream with its first chunk read, so that what fails before the first byte is still an error in the answer.
 * Afterwards an error breaks the connection: nothing incomplete parses.
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
    if (!result.done) bytes += result.value.length;
    if (bytes <= maxBytes) return result;
    await end();
    throw tooLarge(maxBytes);
  };
  first = await counted(first);
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    if (first === undefined) return counted(await iterator.next());
    const result = first;
    first = undefined;
    return result;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) };
};

/** Nobody will read this stream. It is begun all the same: a generator that never ran does not clean up. */
export const discardStream = async (stream: AsyncIterable<Uint8Array>): Promise<void> => {
  for await (const _ of stream) return;
};
