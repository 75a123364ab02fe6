import { WebSocket } from "ws";

export interface FeedConnectionOptions {
  readonly url: string;
  /** A frame that is larger ends the connection: 1009. */
  readonly maxFrameBytes: number;
  readonly pingMs: number;
  readonly pongDeadlineMs: number;
  /** Without `alive()` for this long the connection is ended, whatever the socket says. Asked anew each time. */
  readonly idleMs: () => number;
  readonly onOpen: () => void;
  /** True if the frame was a valid message. */
  readonly onFrame: (bytes: Uint8Array) => boolean;
  /** Once, with why; nothing else follows. */
  readonly onEnd: (reason: EndReason) => void;
}

/** `refused`: the server answered, and does not serve us (HTTP 4xx). */
export type EndReason = "closed" | "silent" | "idle" | "refused";

/** A packet that was lost while the network was down is sent again after 1, 2, 4 seconds; a new attempt is sooner. */
const CONNECT_TIMEOUT_MS = 3_000;

const isRefusal = (status: number | undefined): boolean => status !== undefined && status >= 400 && status < 500;

const bytesOf = (data: Buffer | ArrayBuffer | Buffer[]): Uint8Array => {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
};

/** One WebSocket to one feed, for as long as it lives and delivers. Returns what ends it. */
export const connectFeed = (options: FeedConnectionOptions): (() => void) => {
  const socket = new WebSocket(options.url, {
    maxPayload: options.maxFrameBytes,
    handshakeTimeout: CONNECT_TIMEOUT_MS,
    perMessageDeflate: false,
  });
  let ended = false;
  let dataAtMs = performance.now();
  let pongAtMs = performance.now();

  const end = (reason: EndReason): void => {
    if (ended) return;
    ended = true;
    clearInterval(timer);
    socket.terminate();
    options.onEnd(reason);
  };

  const check = (): void => {
    const nowMs = performance.now();
    if (nowMs - dataAtMs > options.idleMs()) end("idle");
    else if (nowMs - pongAtMs > options.pingMs + options.pongDeadlineMs) end("silent");
    else if (socket.readyState === WebSocket.OPEN) socket.ping();
  };
  const timer = setInterval(check, options.pingMs);

  socket.on("open", () => {
    dataAtMs = performance.now();
    pongAtMs = performance.now();
    options.onOpen();
  });
  socket.on("pong", () => {
    pongAtMs = performance.now();
  });
  socket.on("message", (data) => {
    if (ended) return;
    if (options.onFrame(bytesOf(data))) dataAtMs = performance.now();
  });
  socket.on("unexpected-response", (_request, { statusCode }) => end(isRefusal(statusCode) ? "refused" : "closed"));
  // An error is always followed by a close.
  socket.on("error", () => {});
  socket.on("close", () => end("closed"));
  return () => end("closed");
};
