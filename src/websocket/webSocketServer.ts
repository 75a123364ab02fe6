import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { WebSocketServer } from "ws";
import type { AuthenticatedCaller, Reauthorize } from "../access/access.ts";
import type { AskedByHeaders } from "../core/context.ts";
import { createRequestIds } from "../http/httpRequest.ts";
import { endUpgrade, rejectUpgrade } from "../http/upgrades.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { maxPieces } from "../limits/pieces.ts";
import { Places } from "../limits/places.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { MessageTurns } from "./messageFlow.ts";
import { type HandleMessage, WebSocketConnection } from "./webSocketConnection.ts";

const require = createRequire(import.meta.url);
/** Loaded on first use. */
const loadWs = (): typeof import("ws") => require("ws");

export interface WebSocketServerOptions {
  /** Limit of one message. */
  readonly maxBodyBytes: number;
  readonly maxWebSockets: number;
  readonly maxWebSocketsPerAddress: number;
  /** Limit for the unsent bytes of a connection. Above it, the connection is closed. */
  readonly webSocketBufferBytes: number;
  readonly webSocketPingMs: number;
  /** A connection whose client reads nothing of what is sent for this time is closed. */
  readonly writeTimeoutMs: number;
  readonly memory?: MemoryBudget | undefined;
  readonly webSocketIdleMs: number;
  readonly corsOrigins: "*" | readonly string[];
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** A request for a WebSocket. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly asked: AskedByHeaders;
  readonly stream: Duplex;
  /** The first bytes after the request. */
  readonly head: Buffer;
  readonly admitted: AuthenticatedCaller;
  /** The name of the chain. */
  readonly chain: string;
}

const GOING_AWAY = 1001;
const UNAVAILABLE = "503 Service Unavailable";
/** The name of the places of all WebSockets. */
const ALL = "WebSockets";
/** The part of the time for draining over which the closes are spread. Clients that connect again would else do so at once. */
const SPREAD = 0.5;
/** Time for the client to answer the close frame. */
const CLOSE_GRACE_MS = 1_000;

/** All WebSocket connections of the process. */
export class WebSockets {
  readonly #options: WebSocketServerOptions;
  readonly #connections = new Set<WebSocketConnection>();
  readonly #places = new Places();
  readonly #turns = new MessageTurns();
  readonly #nextRequestId = createRequestIds();
  readonly #timer: NodeJS.Timeout;
  #server: WebSocketServer | undefined;
  #isClosing = false;

  constructor(options: WebSocketServerOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#closeIdle(), options.webSocketPingMs);
    this.#timer.unref();
  }

  /**
   * Upgrades a request. Rejects it with 403 for a foreign origin, with 503 above `maxWebSockets`, and with 429 above
   * `maxWebSocketsPerAddress`.
   */
  accept(upgrade: UpgradeRequest, handle: HandleMessage): void {
    const { request, stream, admitted } = upgrade;
    const status = this.#findRejection(request);
    if (status !== undefined) {
      endUpgrade(stream, status);
      return;
    }
    const { maxWebSockets, maxWebSocketsPerAddress } = this.#options;
    const perAddress = { name: `WebSockets of ${admitted.address}`, max: maxWebSocketsPerAddress };
    const full = this.#places.take([{ name: ALL, max: maxWebSockets }, perAddress]);
    if (full === ALL) {
      endUpgrade(stream, UNAVAILABLE);
    } else if (full !== undefined) {
      this.#rejectAddress(upgrade);
    } else if (stream.destroyed) {
      this.#places.release([ALL, perAddress.name]);
    } else {
      stream.once("close", () => this.#places.release([ALL, perAddress.name]));
      this.#open(upgrade, handle);
    }
  }

  #open({ head, ...upgrade }: UpgradeRequest, handle: HandleMessage): void {
    const { request, stream } = upgrade;
    this.#server ??= this.#createServer();
    this.#server.handleUpgrade(request, stream, head, (socket) => {
      const connection = new WebSocketConnection({
        ...upgrade,
        socket,
        handle,
        turns: this.#turns,
        requestId: this.#nextRequestId(request.headers),
        maxBufferBytes: this.#options.webSocketBufferBytes,
        writeTimeoutMs: this.#options.writeTimeoutMs,
        memory: this.#options.memory,
        telemetry: this.#options.telemetry,
      });
      this.#connections.add(connection);
      this.#report();
      socket.once("close", () => {
        this.#connections.delete(connection);
        this.#report();
      });
    });
  }

  /** Applies the current rules to open connections. Closes those that they do not admit. */
  reauthorize(reauthorize: Reauthorize): void {
    for (const connection of this.#connections) {
      connection.reauthorize(reauthorize);
    }
  }

  /**
   * Accepts no more connections, and closes those that are open one after the other, evenly over half of `timeoutMs`. Each is served
   * until its turn. Then it gets no more calls, and is closed with 1001 after those in flight, at `timeoutMs` in any case.
   */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    const ended = new AbortController();
    // An abort ends the wait early.
    const timeout = wait(timeoutMs, undefined, { signal: ended.signal }).catch(() => undefined);
    const connections = [...this.#connections];
    const startMs = performance.now();
    const endings: Promise<void>[] = [];
    for (const [index, connection] of connections.entries()) {
      const delayMs = startMs + (index * timeoutMs * SPREAD) / connections.length - performance.now();
      if (delayMs > 0 && this.#connections.has(connection)) {
        await Promise.race([connection.closed, wait(delayMs, undefined, { ref: false })]);
      }
      endings.push(this.#end(connection, timeout, Math.min(timeoutMs, CLOSE_GRACE_MS)));
    }
    await Promise.all(endings);
    ended.abort();
    this.#server?.close();
  }

  async #end(connection: WebSocketConnection, timeout: Promise<void>, graceMs: number): Promise<void> {
    connection.stop();
    await Promise.race([connection.drained(), timeout]);
    connection.close(GOING_AWAY, "going away");
    await Promise.race([connection.closed, wait(graceMs, undefined, { ref: false })]);
    connection.terminate();
  }

  #createServer(): WebSocketServer {
    const { WebSocketServer } = loadWs();
    return new WebSocketServer({
      noServer: true,
      maxPayload: this.#options.maxBodyBytes,
      maxFragments: maxPieces(this.#options.maxBodyBytes),
      maxBufferedChunks: maxPieces(this.#options.maxBodyBytes),
      // Compressing each message for each reader costs more memory and time than it saves.
      perMessageDeflate: false,
      clientTracking: false,
    });
  }

  /** Returns the HTTP status of a request that must not be upgraded. */
  #findRejection({ headers: { origin } }: IncomingMessage): string | undefined {
    const { corsOrigins } = this.#options;
    if (corsOrigins !== "*" && origin !== undefined && !corsOrigins.includes(origin)) {
      return "403 Forbidden";
    }
    return this.#isClosing ? UNAVAILABLE : undefined;
  }

  #rejectAddress({ request, stream }: UpgradeRequest): void {
    const { maxWebSocketsPerAddress, telemetry } = this.#options;
    telemetry.metrics.accessRefused.inc({ reason: "webSockets" });
    const message = `too many WebSockets: at most ${maxWebSocketsPerAddress} from one address`;
    const error = new RpcError(CODES.RATE_LIMITED, message, { status: 429, retryAfterSeconds: 1 });
    rejectUpgrade(stream, error, this.#nextRequestId(request.headers));
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
    this.#options.telemetry.metrics.webSockets.set(this.#connections.size);
  }
}
