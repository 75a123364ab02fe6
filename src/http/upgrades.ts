import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { needsKey } from "../access/access.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import { answerHeaders, rejected } from "./postResponder.ts";
import { type Admitted, orThrow } from "./router.ts";

interface UpgradesOptions {
  /** Returns the error of a client that is not admitted, or whose key may not use the chain. */
  admit(request: IncomingMessage): Awaitable<Admitted | RpcError>;
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

  #onAdmitted(admitted: Admitted | RpcError, request: IncomingMessage, { socket, head }: UpgradedStream): void {
    try {
      const { caller, route } = orThrow(admitted);
      if (caller.payments !== undefined) {
        throw needsKey();
      }
      if (route.endpoint?.upgrade === undefined) {
        endUpgrade(socket, "404 Not Found");
      } else {
        route.endpoint.upgrade(request, socket, head, caller);
      }
    } catch (error) {
      if (!(error instanceof RpcError)) {
        throw error;
      }
      rejectUpgrade(socket, error, this.#options.nextRequestId(request.headers));
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
  const answer = rejected(error);
  const body = Buffer.concat(answer.chunks);
  const headers = answerHeaders(answer, requestId, ["Connection", "close", "Content-Length", String(body.length)]);
  const lines = headers.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  const head = `HTTP/1.1 ${error.status} ${STATUS_TEXT[error.status] ?? ""}\r\n${lines.join("")}\r\n`;
  socket.end(Buffer.concat([Buffer.from(head), body]));
};
