import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type AuthenticatedCaller, needsKey, type Reauthorize } from "../access/access.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { errorResult } from "../jsonrpc/response.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { HttpTelemetry } from "./httpTelemetry.ts";
import { NotPassedError, PassedMessages } from "./passedMessages.ts";
import type { Route } from "./router.ts";

interface UpgradesOptions {
  /** Returns the error of a client that is not admitted. */
  admit(request: IncomingMessage): Awaitable<AuthenticatedCaller | RpcError>;
  /** Returns the route of an admitted request, or the error if its key may not use the chain. */
  routeOf(admitted: AuthenticatedCaller): Route | RpcError;
  nextRequestId(headers: IncomingHttpHeaders): string;
  /** Limit of a message that is passed through and may be JSON-RPC. */
  readonly maxBodyBytes: number;
  readonly memory?: MemoryBudget | undefined;
  /** Connections whose key or token has ended are closed at this interval. */
  readonly webSocketPingMs: number;
}

/** The stream of an upgrade request, and the bytes that follow its headers. */
interface UpgradedStream {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** An upgraded connection that is passed through. */
interface PassedThrough {
  readonly admitted: AuthenticatedCaller;
  readonly chain: string | undefined;
}

/** Routes upgrade requests, and follows the connections that are passed through. Endpoints follow their own WebSockets. */
export class Upgrades {
  readonly #options: UpgradesOptions;
  readonly #telemetry: HttpTelemetry;
  readonly #passedThrough = new Map<Duplex, PassedThrough>();

  readonly #timer: NodeJS.Timeout;

  constructor(options: UpgradesOptions, telemetry: HttpTelemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
    this.#timer = setInterval(() => this.#closeExpired(), options.webSocketPingMs);
    this.#timer.unref();
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

  /** Closes connections that the current rules do not admit. */
  reauthorize(reauthorize: Reauthorize): void {
    for (const [socket, { admitted, chain }] of this.#passedThrough) {
      try {
        const use = { chain, isSubscribed: false, requiresProof: false };
        this.#passedThrough.set(socket, { admitted: reauthorize(admitted, use), chain });
      } catch (error) {
        if (!(error instanceof RpcError)) {
          throw error;
        }
        socket.destroy();
      }
    }
  }

  #closeExpired(): void {
    for (const [socket, { admitted }] of this.#passedThrough) {
      if (admitted.expiresAtMs !== undefined && admitted.expiresAtMs <= Date.now()) {
        socket.destroy();
      }
      admitted.verifyAgain?.().catch((error: unknown) => {
        socket.destroy();
        if (!(error instanceof RpcError)) {
          this.#telemetry.logBroken(error, "authentication");
        }
      });
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (const socket of this.#passedThrough.keys()) {
      socket.destroy();
    }
  }

  #messagesOf({ clientId, charge }: AuthenticatedCaller): PassedMessages {
    const { memory, maxBodyBytes } = this.#options;
    const messages = new PassedMessages({ maxMessageBytes: maxBodyBytes, memory, clientId });
    return messages.once("error", (error) => {
      if (error instanceof NotPassedError && error.isJsonRpc) {
        charge?.(1, "invalid");
        this.#telemetry.metrics.accessRefused.inc({ reason: "passThrough" });
      }
    });
  }

  #onAdmitted(admitted: AuthenticatedCaller | RpcError, request: IncomingMessage, stream: UpgradedStream): void {
    const { routeOf, nextRequestId } = this.#options;
    const { socket } = stream;
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
    try {
      this.#upgrade(route, request, { ...stream, admitted });
    } catch (error) {
      if (!(error instanceof RpcError)) {
        throw error;
      }
      reject(error);
    }
  }

  #upgrade(
    { endpoint, passthrough, target, chain }: Route,
    request: IncomingMessage,
    { socket, head, admitted }: UpgradedStream & { readonly admitted: AuthenticatedCaller },
  ): void {
    if (endpoint?.upgrade !== undefined) {
      endpoint.upgrade(request, socket, head, admitted);
    } else if (passthrough !== undefined) {
      this.#passedThrough.set(socket, { admitted, chain });
      socket.once("close", () => this.#passedThrough.delete(socket));
      request.url = target;
      admitted.removeKey?.(request);
      passthrough.upgrade(request, socket, head, this.#messagesOf(admitted));
    } else {
      endUpgrade(socket, "404 Not Found");
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
