import type { Duplex } from "node:stream";
import { errorResult } from "../jsonrpc/dispatchResult.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";

/** Ends a connection that asked for an upgrade, with an empty response. */
export const endUpgrade = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
};

const STATUS_TEXT: Readonly<Record<number, string>> = { 401: "Unauthorized", 429: "Too Many Requests" };

/** Ends a connection that asked for an upgrade, with an error in JSON. */
export const rejectUpgrade = (socket: Duplex, error: RpcError, requestId: string): void => {
  const body = Buffer.concat(errorResult(error).chunks);
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_TEXT[error.status] ?? ""}`,
    "Connection: close",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    `x-request-id: ${requestId}`,
    ...(error.status === 401 ? ["WWW-Authenticate: Bearer"] : []),
    ...(error.retryAfterSeconds === undefined ? [] : [`Retry-After: ${error.retryAfterSeconds}`]),
  ];
  socket.end(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]));
};
