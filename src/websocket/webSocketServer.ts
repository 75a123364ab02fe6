import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { WebSocketServer } from "ws";
import { createRequestIds } from "../http/endpoint.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { type HandleMessage, openWebSocket, type WebSocketConnection } from "./webSocketConnection.ts";

const require = createRequire(import.meta.url);
/** Loaded on first use. */
const loadWs = (): typeof import("ws") => require("ws");

export interface WebSocketServerOptions {
  /** Limit of one message. */
  readonly maxBodyBytes: number;
  readonly maxWebSockets: number;
  /** Limit for the unsent bytes of a connection. Above it, the connection is closed. */
  readonly webSocketBufferBytes: number;
  readonly webSocketPingMs: number;
  readonly webSocketIdleMs: number;
  readonly corsOrigins: "*" | readonly string[];
  readonly metrics: Pick<Metrics, "webSockets" | "slowClosed">;
  /** Called with errors outside a call. */
  onError(error: unknown, requestId: string): void;
}

/** All WebSocket connections of the process. */
export interface WebSockets {
  /** Upgrades a request. Rejects it with 403 for a foreign origin, and with 503 above `maxWebSockets`. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, handle: HandleMessage): void;
  /** Accepts no more calls and waits up to `timeoutMs` for those in flight. Then closes each connection with 1001. */
  close(timeoutMs: number): Promise<void>;
}

const GOING_AWAY = 1001;
/** Time for the client to answer the close frame. */
const CLOSE_GRACE_MS = 1_000;

const reject = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
};

class ConnectionSet implements WebSockets {
  readonly #options: WebSocketServerOptions;
  readonly #connections = new Set<WebSocketConnection>();
  readonly #nextRequestId = createRequestIds();
  readonly #timer: NodeJS.Timeout;
  #server: WebSocketServer | undefined;
  #isClosing = false;

  constructor(options: WebSocketServerOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#closeIdle(), options.webSocketPingMs);
    this.#timer.unref();
  }

  accept(request: IncomingMessage, stream: Duplex, head: Buffer, handle: HandleMessage): void {
    const status = this.#findRejection(request);
    if (status !== undefined) {
      reject(stream, status);
      return;
    }
    this.#server ??= this.#createServer();
    this.#server.handleUpgrade(request, stream, head, (socket) => {
      const connection = openWebSocket({
        socket,
        stream,
        request,
        handle,
        requestId: this.#nextRequestId(request.headers),
        maxBufferBytes: this.#options.webSocketBufferBytes,
        onSlow: () => this.#options.metrics.slowClosed.inc(),
        onError: this.#options.onError,
      });
      this.#connections.add(connection);
      this.#report();
      socket.once("close", () => {
        this.#connections.delete(connection);
        this.#report();
      });
    });
  }

  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    const ended = new AbortController();
    // An abort ends the wait early.
    const timeout = wait(timeoutMs, undefined, { signal: ended.signal }).catch(() => undefined);
    await Promise.all(
      [...this.#connections].map(async (connection) => {
        connection.stop();
        await Promise.race([connection.drained(), timeout]);
        connection.close(GOING_AWAY, "going away");
        await Promise.race([connection.closed, wait(Math.min(timeoutMs, CLOSE_GRACE_MS), undefined, { ref: false })]);
        connection.terminate();
      }),
    );
    ended.abort();
    this.#server?.close();
  }

  #createServer(): WebSocketServer {
    const { WebSocketServer } = loadWs();
    return new WebSocketServer({
      noServer: true,
      maxPayload: this.#options.maxBodyBytes,
      // Compressing each message for each reader costs more memory and time than it saves.
      perMessageDeflate: false,
      clientTracking: false,
    });
  }

  /** Returns the HTTP status of a request that must not be upgraded. */
  #findRejection({ headers: { origin } }: IncomingMessage): string | undefined {
    const { corsOrigins, maxWebSockets } = this.#options;
    if (corsOrigins !== "*" && origin !== undefined && !corsOrigins.includes(origin)) {
      return "403 Forbidden";
    }
    const isFull = this.#isClosing || this.#connections.size >= maxWebSockets;
    return isFull ? "503 Service Unavailable" : undefined;
  }

  /** Closes idle connections and sends a ping to the others. */
  #closeIdle(): void {
    for (const connection of this.#connections) {
      if (connection.isIdle(this.#options.webSocketIdleMs)) {
        connection.close(GOING_AWAY, "idle");
      } else {
        connection.ping();
      }
    }
  }

  #report(): void {
    this.#options.metrics.webSockets.set(this.#connections.size);
  }
}

/** Creates the WebSocket server of the process. */
export const createWebSocketServer = (options: WebSocketServerOptions): WebSockets => new ConnectionSet(options);
