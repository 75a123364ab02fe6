import type { IncomingMessage } from "node:http";
import { mayBeginJsonRpc } from "../jsonrpc/isJsonRpc.ts";
import { type BodyMemory, type ReadBody, readBody } from "./readBody.ts";

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
