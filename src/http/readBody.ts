import type { IncomingMessage } from "node:http";

const EMPTY = Buffer.alloc(0);

/** The request's body; `tooLarge` as soon as that is known, `aborted` where the caller left before its end. */
export const readBody = (request: IncomingMessage, maxBytes: number): Promise<Buffer | "tooLarge" | "aborted"> => {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Promise.resolve("tooLarge");
  return new Promise((resolve) => {
    let first: Buffer | undefined;
    let rest: Buffer[] | undefined;
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        // What still comes is read and thrown away (see refuseLarge).
        rest = undefined;
        resolve("tooLarge");
      } else if (first === undefined) first = chunk;
      else if (rest === undefined) rest = [first, chunk];
      else rest.push(chunk);
    });
    request.on("end", () => resolve(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, bytes)));
    request.on("close", () => resolve("aborted"));
  });
};
