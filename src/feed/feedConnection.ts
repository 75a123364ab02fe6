import { createRequire } from "node:module";
import { brotliDecompressSync } from "node:zlib";
import type { WebSocket } from "ws";
import { connectionFault } from "../core/connectionFault.ts";
import { maxPieces } from "../limits/pieces.ts";

const require = createRequire(import.meta.url);
/** Loaded on first use. */
const loadWs = (): typeof import("ws") => require("ws");

export interface FeedConnectionOptions {
  readonly url: string;
  /** A larger frame ends the connection with code 1009. */
  readonly maxFrameBytes: number;
  readonly pingMs: number;
  readonly pongDeadlineMs: number;
  /** The connection ends if no valid message arrives for this time. It is called before each check. */
  readonly idleMs: () => number;
  readonly onOpen: () => void;
  /** Returns true if the frame was a valid message. */
  readonly onFrame: (bytes: Uint8Array) => boolean;
  /** Called once, as the last event. `fault` is the error of the connection, without the URL. */
  readonly onEnd: (reason: EndReason, fault: string | undefined) => void;
}

/** `refused`: the server rejected the connection (HTTP 4xx). `silent`: no pong. `idle`: no valid message. */
export type EndReason = "closed" | "silent" | "idle" | "refused";

/** TCP repeats a lost packet after 1, 2 and 4 seconds. A new connection is faster. */
const CONNECT_TIMEOUT_MS = 3_000;

const isRefusal = (status: number | undefined): boolean => status !== undefined && status >= 400 && status < 500;

const bytesOf = (data: Buffer | ArrayBuffer | Buffer[]): Uint8Array => {
  if (Array.isArray(data)) {
    return Buffer.concat(data);
  }
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
};

class FeedConnection {
  readonly #options: FeedConnectionOptions;
  readonly #socket: WebSocket;
  readonly #timer: NodeJS.Timeout;
  #hasEnded = false;
  #fault: string | undefined;
  #dataAtMs = performance.now();
  #pongAtMs = performance.now();

  constructor(options: FeedConnectionOptions) {
    this.#options = options;
    const { WebSocket } = loadWs();
    this.#socket = new WebSocket(options.url, {
      maxPayload: options.maxFrameBytes,
      maxFragments: maxPieces(options.maxFrameBytes),
      maxBufferedChunks: maxPieces(options.maxFrameBytes),
      handshakeTimeout: CONNECT_TIMEOUT_MS,
      perMessageDeflate: false,
    });
    this.#timer = setInterval(() => this.#check(), options.pingMs);
    this.#listen(this.#socket);
  }

  end(reason: EndReason): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    clearInterval(this.#timer);
    this.#socket.terminate();
    this.#options.onEnd(reason, this.#fault);
  }

  #listen(socket: WebSocket): void {
    socket.on("open", () => {
      this.#dataAtMs = performance.now();
      this.#pongAtMs = performance.now();
      this.#options.onOpen();
    });
    socket.on("pong", () => {
      this.#pongAtMs = performance.now();
    });
    socket.on("message", (data) => {
      if (!this.#hasEnded && this.#options.onFrame(bytesOf(data))) {
        this.#dataAtMs = performance.now();
      }
    });
    socket.on("unexpected-response", (_request, { statusCode }) => {
      this.#fault = `HTTP ${statusCode}`;
      this.end(isRefusal(statusCode) ? "refused" : "closed");
    });
    // `close` follows every error and ends the connection.
    socket.on("error", (error) => {
      this.#fault ??= connectionFault(error);
    });
    socket.on("close", () => this.end("closed"));
  }

  #check(): void {
    const { idleMs, pingMs, pongDeadlineMs } = this.#options;
    const nowMs = performance.now();
    if (nowMs - this.#dataAtMs > idleMs()) {
      this.end("idle");
    } else if (nowMs - this.#pongAtMs > pingMs + pongDeadlineMs) {
      this.end("silent");
    } else if (this.#socket.readyState === this.#socket.OPEN) {
      this.#socket.ping();
    }
  }
}

/** Opens one WebSocket to a feed. Returns the function that closes it. */
export const connectFeed = (options: FeedConnectionOptions): (() => void) => {
  const connection = new FeedConnection(options);
  return () => connection.end("closed");
};

export type Frame = { readonly text: string } | { readonly refused: "tooLarge" | "malformed" };

const OPENING_BRACE = 0x7b;
/** The first byte of X Layer's frames. A brotli stream that begins with this byte is empty (RFC 7932, section 9.2). */
const RECORD_SEPARATOR = 0x1e;
const isWhitespace = (byte: number | undefined): boolean =>
  byte === 0x20 || (byte !== undefined && byte >= 9 && byte <= 13);

/** JSON of a flashblock is compressed to a tenth or less. A frame that grows by more than this is hostile. */
const MAX_RATIO = 100;
/** Output of this size is decompressed in a millisecond. */
const MIN_OUTPUT_BYTES = 256 * 1024;

const decoder = new TextDecoder("utf-8", { fatal: true });

const decodeText = (bytes: Uint8Array): Frame => {
  try {
    return { text: decoder.decode(bytes) };
  } catch {
    return { refused: "malformed" };
  }
};

const isTooLong = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";

/**
 * Decodes one WebSocket frame, text or binary (docs/reference/flashblocks.md, Frames). Skips a record separator and whitespace.
 * A frame that then begins with `{` is JSON, any other frame is brotli. `maxBytes` limits the frame and the decompressed text. So does their ratio.
 */
export const decodeFrame = (frame: Uint8Array, maxBytes: number): Frame => {
  if (frame.length > maxBytes) {
    return { refused: "tooLarge" };
  }
  const bytes = frame[0] === RECORD_SEPARATOR ? frame.subarray(1) : frame;
  let start = 0;
  while (isWhitespace(bytes[start])) {
    start++;
  }
  if (start === bytes.length) {
    return { refused: "malformed" };
  }
  if (bytes[start] === OPENING_BRACE) {
    return decodeText(bytes.subarray(start));
  }
  const maxOutputLength = Math.min(maxBytes, Math.max(MIN_OUTPUT_BYTES, MAX_RATIO * bytes.length));
  try {
    return decodeText(brotliDecompressSync(bytes, { maxOutputLength }));
  } catch (error) {
    return { refused: isTooLong(error) ? "tooLarge" : "malformed" };
  }
};
