import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { WebSocketServer } from "ws";
import { createRequestIds } from "../http/endpoint.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { type HandleMessage, openWebSocket, type WebSocketConnection } from "./webSocketConnection.ts";

export interface WebSocketServerOptions {
  /** Size of one message at most. */
  readonly maxBodyBytes: number;
  readonly maxWebSockets: number;
  /** Bytes that may wait for a reader before its connection is closed. */
  readonly webSocketBufferBytes: number;
  readonly webSocketPingMs: number;
  readonly webSocketIdleMs: number;
  readonly corsOrigins: "*" | readonly string[];
  readonly metrics: Pick<Metrics, "webSockets" | "slowClosed">;
  /** Told what went wrong outside a call. */
  onError(error: unknown, requestId: string): void;
}

/** All WebSocket connections of the process. */
export interface WebSockets {
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, handle: HandleMessage): void;
  /** Takes no more calls; those in flight end, in `timeoutMs` at most, and each connection is closed with 1001. */
  close(timeoutMs: number): Promise<void>;
}

const GOING_AWAY = 1001;
/** For the other side to answer the close frame. */
const CLOSE_GRACE_MS = 1_000;

const refuse = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
};

export const createWebSocketServer = (options: WebSocketServerOptions): WebSockets => {
  const { corsOrigins, maxWebSockets, metrics, webSocketIdleMs } = options;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: options.maxBodyBytes,
    // Deflating each message for each reader costs more memory and time than it saves.
    perMessageDeflate: false,
    clientTracking: false,
  });
  const connections = new Set<WebSocketConnection>();
  const nextRequestId = createRequestIds();
  let closing = false;

  const isAllowed = (origin: string | undefined): boolean =>
    corsOrigins === "*" || origin === undefined || corsOrigins.includes(origin);

  const sweep = (): void => {
    for (const connection of connections) {
      if (connection.isIdle(webSocketIdleMs)) connection.close(GOING_AWAY, "idle");
      else connection.ping();
    }
  };
  const timer = setInterval(sweep, options.webSocketPingMs);
  timer.unref();

  return {
    accept: (request, stream, head, handle) => {
      if (!isAllowed(request.headers.origin)) return refuse(stream, "403 Forbidden");
      if (closing || connections.size >= maxWebSockets) return refuse(stream, "503 Service Unavailable");
      server.handleUpgrade(request, stream, head, (socket) => {
        const connection = openWebSocket({
          socket,
          stream,
          request,
          handle,
          requestId: nextRequestId(request.headers),
          maxBufferBytes: options.webSocketBufferBytes,
          onSlow: () => metrics.slowClosed.inc(),
          onError: options.onError,
        });
        connections.add(connection);
        metrics.webSockets.set(connections.size);
        socket.once("close", () => {
          connections.delete(connection);
          metrics.webSockets.set(connections.size);
        });
      });
    },
    close: async (timeoutMs) => {
      closing = true;
      clearInterval(timer);
      const left = [...connections];
      const ended = new AbortController();
      const late = wait(timeoutMs, undefined, { signal: ended.signal }).catch(() => {});
      await Promise.all(
        left.map(async (connection) => {
          connection.stop();
          await Promise.race([connection.settled(), late]);
          connection.close(GOING_AWAY, "going away");
          await Promise.race([connection.closed, wait(Math.min(timeoutMs, CLOSE_GRACE_MS), undefined, { ref: false })]);
          connection.terminate();
        }),
      );
      ended.abort();
      server.close();
    },
  };
};
