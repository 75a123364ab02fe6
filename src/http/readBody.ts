import type { IncomingMessage } from "node:http";

const EMPTY = Buffer.alloc(0);

/** Counts the bytes of a body. */
export interface BodyMemory {
  /** Announces a body of this length. Returns false if there will be no room. A refusal is counted. */
  announceBody(bytes: number): boolean;
  /** Counts bytes that have arrived. Returns false if there is no room. */
  holdBody(bytes: number): boolean;
}

export type ReadBody = Buffer | "tooLarge" | "overBudget";

/**
 * Reads the request's body and calls `onBody` with it, or with `tooLarge` at the limit, or with `overBudget`.
 * The bytes of a body count from the time when the rest of it must be waited for.
 * Does not call it if the client disconnects. A callback, because a promise costs more than reading a small body.
 */
export const readBody = (
  request: IncomingMessage,
  maxBytes: number,
  onBody: (body: ReadBody) => void,
  memory?: BodyMemory,
): void => {
  const length = Number(request.headers["content-length"] ?? 0);
  if (length > maxBytes || memory?.announceBody(length) === false) {
    onBody(length > maxBytes ? "tooLarge" : "overBudget");
    return;
  }
  let first: Buffer | undefined;
  let rest: Buffer[] | undefined;
  let bytes = 0;
  let isRefused = false;
  // The listener stays and discards the remaining chunks.
  const refuse = (reason: "tooLarge" | "overBudget"): void => {
    isRefused = true;
    first = undefined;
    rest = undefined;
    onBody(reason);
  };
  request.on("data", (chunk: Buffer) => {
    if (isRefused) {
      return;
    }
    bytes += chunk.length;
    const isWhole = chunk.length === length;
    if (bytes > maxBytes) {
      refuse("tooLarge");
    } else if (!isWhole && memory?.holdBody(chunk.length) === false) {
      refuse("overBudget");
    } else if (first === undefined) {
      first = chunk;
    } else if (rest === undefined) {
      rest = [first, chunk];
    } else {
      rest.push(chunk);
    }
  });
  request.on("end", () => {
    if (!isRefused) {
      onBody(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, bytes));
    }
  });
};
