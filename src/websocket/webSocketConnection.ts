import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import type { AuthenticatedCaller, Reauthorize } from "../access/access.ts";
import type { AskedByHeaders, InboundRequest, Received, Subscriber } from "../core/context.ts";
import { LazySignal } from "../core/lazySignal.ts";
import { RequestMemory } from "../http/requestMemory.ts";
import { type Chunk, errorResult, isStream, isWhole } from "../jsonrpc/response.ts";
import { CODES, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import { type MemoryBudget, type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { Message } from "./message.ts";
import { MessageFlow, type MessageTurns } from "./messageFlow.ts";
import { Pings, SendQueue } from "./sendQueue.ts";

/** Handles one message. Rejects with RpcError if the whole message is invalid. */
export type HandleMessage = (
  body: Uint8Array,
  request: InboundRequest,
) => Promise<{ readonly chunks: readonly Chunk[] }>;

export interface WebSocketConnectionOptions {
  readonly socket: WebSocket;
  readonly stream: Duplex;
  /** The upgrade request. */
  readonly request: IncomingMessage;
  readonly asked: AskedByHeaders;
  readonly admitted: AuthenticatedCaller;
  /** The name of the chain. */
  readonly chain: string;
  readonly requestId: string;
  readonly handle: HandleMessage;
  /** Handles the messages of all connections in turn. */
  readonly turns: MessageTurns;
  readonly maxBufferBytes: number;
  /** A connection whose client reads nothing of what is sent for this time is closed. */
  readonly writeTimeoutMs: number;
  /** Counts messages, and responses that wait for slow readers. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

const TRY_AGAIN_LATER = 1013;
const POLICY_VIOLATION = 1008;

/** Serves JSON-RPC on an open WebSocket until it is closed. */
export class WebSocketConnection {
  readonly closed: Promise<void>;
  readonly #options: WebSocketConnectionOptions;
  readonly #socket: WebSocket;
  readonly #sendQueue: SendQueue;
  readonly #received: Received;
  readonly #subscriptions = new Map<string, () => void>();
  readonly #ending = new LazySignal();
  #admitted: AuthenticatedCaller;
  readonly #flow: MessageFlow;
  readonly #pings: Pings;
  readonly #unsent: MemoryUse | undefined;

  constructor(options: WebSocketConnectionOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#pings = new Pings(options.socket);
    this.#admitted = options.admitted;
    const { clientId } = options.admitted;
    const requests = options.memory?.open("requests", clientId);
    this.#unsent = options.memory?.open("responses", clientId);
    this.#sendQueue = new SendQueue({
      ...options,
      use: this.#unsent,
      onSent: (bytes) => this.#admitted.usage?.send(bytes),
      onSlow: () => {
        options.telemetry.metrics.slowClosed.inc();
        this.close(TRY_AGAIN_LATER, "the reader is too slow");
      },
      onStalled: this.#onStalled,
      onRoom: () => this.#flow.onRoom(),
    });
    this.#flow = new MessageFlow(options.socket, this.#sendQueue, requests);
    this.#received = {
      headers: options.request.headers,
      asked: options.asked,
      requestId: options.requestId,
      subscriber: this.#createSubscriber(),
    };
    this.closed = this.#listen();
  }

  /** Whether there is no call in flight, no subscription, and no call in the last `forMs`. */
  isIdle(forMs: number): boolean {
    return this.#subscriptions.size === 0 && this.#flow.isIdle(forMs);
  }

  /** Sends a ping. Terminates the connection if it did not answer the last one. */
  ping(): void {
    if (!this.#endIfExpired()) {
      this.#pings.send();
      this.#admitted.verifyAgain?.().catch((error: unknown) => this.#refuse(error));
    }
  }

  /** Closes the connection, whose client is not admitted any more. */
  #refuse(error: unknown): void {
    if (error instanceof RpcError) {
      this.stop();
      this.close(POLICY_VIOLATION, error.message);
    } else {
      this.#logError(error);
    }
  }

  #logError(error: unknown): void {
    const { telemetry, requestId } = this.#options;
    telemetry.log.warn({ err: error, requestId }, "a WebSocket message was not answered");
  }

  #endIfExpired(): boolean {
    const { expiresAtMs } = this.#admitted;
    if (expiresAtMs === undefined || expiresAtMs > Date.now()) {
      return false;
    }
    this.stop();
    this.close(POLICY_VIOLATION, "the API key has expired");
    return true;
  }

  /** Applies the current rules. Closes the connection (1008) if they do not admit it. */
  reauthorize(reauthorize: Reauthorize): void {
    try {
      this.#admitted = reauthorize(this.#admitted, {
        chain: this.#options.chain,
        isSubscribed: this.#subscriptions.size > 0,
        needs: this.#received.asked.needs,
      });
    } catch (error) {
      if (!(error instanceof RpcError)) {
        throw error;
      }
      this.stop();
      this.close(POLICY_VIOLATION, error.status === 401 ? "the API key is not valid any more" : error.message);
    }
  }

  /** Discards all further messages. */
  stop(): void {
    this.#flow.stop();
  }

  /** Resolves when no call is in flight. */
  drained(): Promise<void> {
    return this.#flow.drained();
  }

  close(code: number, reason: string): void {
    this.#endSubscriptions();
    this.#socket.close(code, reason);
    // Read again, else the client's close frame stays unread.
    if (this.#socket.isPaused) {
      this.#socket.resume();
    }
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #createSubscriber(): Subscriber {
    const socket = this.#socket;
    return {
      subscriptions: this.#subscriptions,
      get isOpen() {
        return socket.readyState === socket.OPEN;
      },
      notify: (fragments, burst) => this.#sendQueue.notify(fragments, burst),
      close: (code, reason) => this.close(code, reason),
    };
  }

  /** Resolves when the connection is closed. */
  #listen(): Promise<void> {
    this.#socket.on("message", (data) => this.#onMessage(data));
    if (this.#options.memory !== undefined) {
      this.#options.stream.on("data", (chunk: Buffer) => this.#onBytes(chunk));
    }
    // The close code reports the error to the client: 1009 for a message that is too large.
    this.#socket.on("error", () => undefined);
    return new Promise((resolve) => {
      this.#socket.once("close", () => {
        this.#endSubscriptions();
        this.#ending.abort();
        this.#flow.close();
        this.#unsent?.end();
        resolve();
      });
    });
  }

  #endSubscriptions(): void {
    for (const end of [...this.#subscriptions.values()]) {
      end();
    }
    this.#subscriptions.clear();
  }

  /** Counts what a message costs that is not complete. */
  #onBytes(chunk: Buffer): void {
    const refusal = this.#flow.receive(chunk);
    if (refusal === undefined) {
      return;
    }
    if (refusal === "overBudget") {
      this.close(TRY_AGAIN_LATER, overBudget().message);
    } else {
      this.close(POLICY_VIOLATION, "a message in too many pieces");
    }
    this.terminate();
  }

  #onMessage(data: RawData): void {
    // Pings are too rare: no call after the expiry is answered.
    if (this.#endIfExpired() || !this.#flow.begin()) {
      return;
    }
    const body = toBytes(data);
    this.#admitted.usage?.receive(body.length);
    const { memory: budget } = this.#options;
    const memory = budget && new RequestMemory(budget, this.#admitted.clientId);
    const shared = { received: this.#received, lazySignal: this.#ending };
    const message = new Message({ ...shared, caller: this.#admitted, memory });
    const hasRoom = body.length <= UNCOUNTED_BYTES || memory?.holdBody(body.length) !== false;
    this.#options.turns.run(this, () => {
      this.#handleMessage(hasRoom ? body : undefined, message)
        .catch((error: unknown) => {
          if (!this.#ending.isAborted) {
            this.#logError(error);
          }
        })
        .finally(() => this.#flow.end());
    });
  }

  /** The body is undefined if there is no room for it. */
  async #handleMessage(body: Uint8Array | undefined, message: Message): Promise<void> {
    try {
      if (this.#socket.readyState === this.#socket.CLOSED) {
        return;
      }
      const chunks = await this.#handle(body, message);
      await this.#send(chunks, message.memory);
    } finally {
      message.memory?.release();
    }
    if (this.#socket.readyState === this.#socket.OPEN) {
      message.end();
    }
  }

  /** Sends a response when the client has read enough of earlier ones. Without room for a response that waits, the connection ends. */
  async #send(chunks: readonly Chunk[], memory: RequestMemory | undefined): Promise<void> {
    if (this.#sendQueue.isFull) {
      if (memory?.holdResponse(smallBytes(chunks)) === false) {
        this.#onStalled();
        return;
      }
      await this.#flow.waitForRoom();
    }
    if (chunks.length === 0 || this.#socket.readyState !== this.#socket.OPEN) {
      return;
    }
    if (isWhole(chunks)) {
      // From now on the unsent bytes count.
      memory?.release();
    }
    const sent = this.#sendQueue.sendResponse(chunks);
    this.#flow.sendWaiting();
    await sent;
  }

  readonly #onStalled = (): void => {
    this.#options.telemetry.metrics.slowClosed.inc();
    // The close frame would wait behind the unsent bytes.
    this.terminate();
  };

  async #handle(body: Uint8Array | undefined, message: Message): Promise<readonly Chunk[]> {
    const { handle } = this.#options;
    try {
      if (body === undefined) {
        throw overBudget();
      }
      const { chunks } = await handle(body, message);
      return chunks;
    } catch (error) {
      if (error instanceof RpcError) {
        return errorResult(error).chunks;
      }
      if (!this.#ending.isAborted) {
        this.#logError(error);
      }
      return errorResult(new RpcError(CODES.INTERNAL, "Internal error")).chunks;
    }
  }
}

/** Returns the bytes of the small parts. A larger one counts since it was read, or it belongs to the cache. */
const smallBytes = (chunks: readonly Chunk[]): number =>
  chunks.reduce((sum, chunk) => sum + (isStream(chunk) || chunk.length > UNCOUNTED_BYTES ? 0 : chunk.length), 0);

const toBytes = (data: RawData): Uint8Array => {
  if (Array.isArray(data)) {
    return Buffer.concat(data);
  }
  return data instanceof ArrayBuffer ? Buffer.from(data) : data;
};
