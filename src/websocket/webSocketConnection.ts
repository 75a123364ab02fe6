import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { EndpointRequest } from "../http/endpoint.ts";
import { errorResult } from "../jsonrpc/dispatchResult.ts";
import type { Chunk } from "../jsonrpc/formatResponse.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Subscriber } from "../subscriptions/subscriber.ts";
import { createSendQueue } from "./sendQueue.ts";

export interface WebSocketRequest extends EndpointRequest {
  readonly subscriber: Subscriber;
  /** `then` is called when the answer to this message has been sent: a subscription's events come after its id. */
  onAnswered(then: () => void): void;
}

/** Answers one message; rejects with RpcError where the whole of it is refused. */
export type HandleMessage = (
  body: Uint8Array,
  request: WebSocketRequest,
) => Promise<{ readonly chunks: readonly Chunk[] }>;

export interface WebSocketConnectionOptions {
  readonly socket: WebSocket;
  readonly stream: Duplex;
  /** The request that was upgraded. */
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly handle: HandleMessage;
  readonly maxBufferBytes: number;
  onSlow(): void;
  onError(error: unknown, requestId: string): void;
}

export interface WebSocketConnection {
  /** No call is being answered, nothing is subscribed to, and the last call is as long ago. */
  isIdle(forMs: number): boolean;
  /** Ends a connection that has not answered the ping before. */
  ping(): void;
  /** Reads no more messages. */
  stop(): void;
  /** Resolves when nothing is being answered. */
  settled(): Promise<void>;
  close(code: number, reason: string): void;
  terminate(): void;
  readonly closed: Promise<void>;
}

/** Messages of one connection that are answered at the same time; then it is not read until one is done. */
const MAX_IN_FLIGHT = 64;
const TRY_AGAIN_LATER = 1013;

export const openWebSocket = (options: WebSocketConnectionOptions): WebSocketConnection => {
  const { socket, request, requestId, handle, onError } = options;
  const { headers } = request;
  const clientId = request.socket.remoteAddress ?? "unknown";
  const left = new AbortController();
  const closed = Promise.withResolvers<void>();
  const subscriptions = new Map<string, () => void>();
  let settling: (() => void) | undefined;
  let inFlight = 0;
  let isStopped = false;
  let isAlive = true;
  let lastCallMs = performance.now();

  const leave = (): void => {
    for (const end of [...subscriptions.values()]) end();
    subscriptions.clear();
  };
  const close = (code: number, reason: string): void => {
    leave();
    socket.close(code, reason);
    // The other side's close frame must be read.
    if (socket.isPaused) socket.resume();
  };
  const outbox = createSendQueue({
    ...options,
    onSlow: () => {
      options.onSlow();
      close(TRY_AGAIN_LATER, "the reader is too slow");
    },
  });
  const subscriber: Subscriber = {
    subscriptions,
    get isOpen() {
      return socket.readyState === socket.OPEN;
    },
    notify: outbox.notify,
    close,
  };

  const run = async (body: Uint8Array, onAnswered: (then: () => void) => void): Promise<readonly Chunk[]> => {
    try {
      const asker = { requestId, clientId, headers, signal: left.signal, subscriber, onAnswered };
      return (await handle(body, asker)).chunks;
    } catch (error) {
      if (error instanceof RpcError) return errorResult(error).chunks;
      onError(error, requestId);
      return errorResult(new RpcError(CODES.INTERNAL, "Internal error")).chunks;
    }
  };

  const answer = async (body: Uint8Array): Promise<void> => {
    const begin: (() => void)[] = [];
    const chunks = await run(body, (then) => begin.push(then));
    if (socket.readyState !== socket.OPEN) return;
    if (chunks.length > 0) await outbox.answer(chunks);
    for (const then of begin) then();
  };

  const settle = (): void => {
    inFlight--;
    if (inFlight < MAX_IN_FLIGHT && socket.isPaused && !isStopped) socket.resume();
    if (inFlight === 0) settling?.();
  };

  socket.on("message", (data) => {
    isAlive = true;
    if (isStopped) return;
    lastCallMs = performance.now();
    inFlight++;
    if (inFlight >= MAX_IN_FLIGHT) socket.pause();
    const body = Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? Buffer.from(data) : data;
    answer(body)
      .catch((error: unknown) => left.signal.aborted || onError(error, requestId))
      .finally(settle);
  });
  socket.on("pong", () => {
    isAlive = true;
  });
  // What was wrong is told to the other side by the close code (1009 for a message that is too large).
  socket.on("error", () => undefined);
  socket.once("close", () => {
    leave();
    left.abort();
    closed.resolve();
  });

  return {
    isIdle: (forMs) => inFlight === 0 && subscriptions.size === 0 && performance.now() - lastCallMs > forMs,
    ping: () => {
      if (!isAlive) socket.terminate();
      isAlive = false;
      if (socket.readyState === socket.OPEN) socket.ping();
    },
    stop: () => {
      isStopped = true;
    },
    settled: () =>
      inFlight === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            settling = resolve;
          }),
    close,
    terminate: () => socket.terminate(),
    closed: closed.promise,
  };
};
