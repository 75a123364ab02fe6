import type { IncomingMessage } from "node:http";

const EMPTY = Buffer.alloc(0);

/**
 * Reads the request's body and calls `onBody` with it, or with `tooLarge` at the limit.
 * Does not call it if the client disconnects. A callback, because a promise costs more than reading a small body.
 */
export const readBody = (
  request: IncomingMessage,
  maxBytes: number,
  onBody: (body: Buffer | "tooLarge") => void,
): void => {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    onBody("tooLarge");
    return;
  }
  let first: Buffer | undefined;
  let rest: Buffer[] | undefined;
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    const isOver = bytes > maxBytes;
    bytes += chunk.length;
    if (bytes > maxBytes) {
      // The listener stays and discards the remaining chunks.
      rest = undefined;
      if (!isOver) {
        onBody("tooLarge");
      }
    } else if (first === undefined) {
      first = chunk;
    } else if (rest === undefined) {
      rest = [first, chunk];
    } else {
      rest.push(chunk);
    }
  });
  request.on("end", () => {
    if (bytes <= maxBytes) {
      onBody(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, bytes));
    }
  });
};
