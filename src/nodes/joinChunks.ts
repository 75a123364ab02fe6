import { setImmediate as nextTurn } from "node:timers/promises";

/** Copying this many bytes into new memory takes about 0.3 ms. */
const SLICE_BYTES = 512 * 1024;

/** Larger responses are joined in slices, so that other requests are not delayed. */
export const isJoinedInSlices = (bytes: number): boolean => bytes > 2 * SLICE_BYTES;

/** Joins the chunks of a large response. Other work of the event loop runs between the slices. */
export const joinInSlices = async (chunks: readonly Uint8Array[], bytes: number): Promise<Buffer> => {
  const joined = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  let sliceEnd = SLICE_BYTES;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
    if (at >= sliceEnd) {
      sliceEnd = at + SLICE_BYTES;
      await nextTurn();
    }
  }
  return joined;
};
