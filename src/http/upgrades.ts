import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type AuthenticatedCaller, needsKey } from "../access/access.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { errorResult } from "../jsonrpc/response.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { Route } from "./router.ts";

interface UpgradesOptions {
  /** Returns the error of a client that is not admitted. */
  admit(request: IncomingMessage): Awaitable<AuthenticatedCaller | RpcError>;
  /** Returns the route of an admitted request, or the error if its key may not use the chain. */
  routeOf(admitted: AuthenticatedCaller): Route | RpcError;
  nextRequestId(headers: IncomingHttpHeaders): string;
}

/** The stream of an upgrade request, and the bytes that follow its headers. */
interface UpgradedStream {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** Routes upgrade requests to the WebSockets of chains. No other upgrade is accepted, and none is passed through. */
export class Upgrades {
  readonly #options: UpgradesOptions;

  constructor(options: UpgradesOptions) {
    this.#options = options;
  }

  handle(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Without a listener, a reset of the connection would end the process.
    socket.on("error", () => socket.destroy());
    const admitted = this.#options.admit(request);
    if (!(admitted instanceof Promise)) {
      this.#onAdmitted(admitted, request, { socket, head });
      return;
    }
    void admitted.then((known) => {
      if (!socket.destroyed) {
        this.#onAdmitted(known, request, { socket, head });
      }
    });
  }

  #onAdmitted(admitted: AuthenticatedCaller | RpcError, request: IncomingMessage, stream: UpgradedStream): void {
    const { routeOf, nextRequestId } = this.#options;
    const { socket, head } = stream;
    const reject = (error: RpcError): void => rejectUpgrade(socket, error, nextRequestId(request.headers));
    if (admitted instanceof RpcError) {
      reject(admitted);
      return;
    }
    if (admitted.payments !== undefined) {
      reject(needsKey());
      return;
    }
    const route = routeOf(admitted);
    if (route instanceof RpcError) {
      reject(route);
      return;
    }
    const { endpoint } = route;
    if (endpoint?.upgrade === undefined) {
      endUpgrade(socket, "404 Not Found");
      return;
    }
    try {
      endpoint.upgrade(request, socket, head, admitted);
    } catch (error) {
      if (!(error instanceof RpcError)) {
        throw error;
      }
      reject(error);
    }
  }
}

/** Ends a connection that asked for an upgrade, with an empty response. */
export const endUpgrade = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
};

const STATUS_TEXT: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  429: "Too Many Requests",
};

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
