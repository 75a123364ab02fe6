import type { IncomingMessage } from "node:http";

const EMPTY = Buffer.alloc(0);

/** Reads the request's body. Resolves with `tooLarge` at the limit, and with `aborted` if the client disconnects. */
export const readBody = (request: IncomingMessage, maxBytes: number): Promise<Buffer | "tooLarge" | "aborted"> => {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    return Promise.resolve("tooLarge");
  }
  return new Promise((resolve) => {
    let first: Buffer | undefined;
    let rest: Buffer[] | undefined;
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        // The listener stays and discards the remaining chunks.
        rest = undefined;
        resolve("tooLarge");
      } else if (first === undefined) {
        first = chunk;
      } else if (rest === undefined) {
        rest = [first, chunk];
      } else {
        rest.push(chunk);
      }
    });
    request.on("end", () => resolve(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, bytes)));
    request.on("close", () => resolve("aborted"));
  });
};
