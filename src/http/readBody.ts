import type { IncomingMessage } from "node:http";
import { mayBeginJsonRpc } from "../jsonrpc/isJsonRpc.ts";

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
  let chunks: Buffer[] | undefined;
  let bytes = 0;
  let isRefused = false;
  // The listener stays and discards the remaining chunks.
  const refuse = (reason: "tooLarge" | "overBudget"): void => {
    isRefused = true;
    first = undefined;
    chunks = undefined;
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
    } else if (chunks === undefined) {
      chunks = [first, chunk];
    } else {
      chunks.push(chunk);
    }
  });
  request.on("end", () => {
    if (!isRefused) {
      onBody(chunks === undefined ? (first ?? EMPTY) : Buffer.concat(chunks, bytes));
    }
  });
};

/** The body of a request that is passed through: the whole of one that may be JSON-RPC. Any other is not read. */
export type PassedBody = ReadBody | "unread";

/** More white space than this is read as JSON is, so that it counts. */
const MAX_SPACE_BYTES = 4 * 1024;

/** Whether a request has a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Reads the body of a request if it may be JSON-RPC, as `readBody` does. Its first bytes decide.
 * Any other body remains to be read, with its first bytes.
 */
export const readPassedBody = (
  request: IncomingMessage,
  maxBytes: number,
  onBody: (body: PassedBody) => void,
  memory: BodyMemory,
): void => {
  let start: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    const mayBegin = mayBeginJsonRpc(start) ?? (start.length > MAX_SPACE_BYTES ? true : undefined);
    if (mayBegin === undefined) {
      return;
    }
    request.off("data", onData).off("end", onEnd).pause();
    request.unshift(start);
    if (mayBegin) {
      readBody(request, maxBytes, onBody, memory);
      request.resume();
    } else {
      onBody("unread");
    }
  };
  const onEnd = (): void => onBody(start);
  request.on("data", onData).on("end", onEnd);
};
