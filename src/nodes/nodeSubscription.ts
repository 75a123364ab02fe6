import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { connectionFault } from "../core/connectionFault.ts";
import { maxPieces } from "../limits/pieces.ts";
import { parseNodeUrl } from "./nodeConfig.ts";

const require = createRequire(import.meta.url);
/** Loaded on first use. */
const loadWs = (): typeof import("ws") => require("ws");

export interface NodeSubscriptionOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Params of `eth_subscribe`. */
  readonly params: readonly unknown[];
  readonly signal: AbortSignal;
  readonly onResult: (result: unknown) => void;
  /** Called when the node has accepted the subscription. */
  readonly onAccepted?: () => void;
  /** Called when the node has rejected the subscription. */
  readonly onRejected?: () => void;
  /** `fault` is the error of the connection, without the URL; undefined if it was closed without an error. */
  readonly onClosed?: (fault: string | undefined) => void;
}

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 10_000;
const PING_MS = 10_000;
const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;

interface Message {
  readonly id?: unknown;
  readonly error?: unknown;
  readonly params?: { readonly result?: unknown };
}

const parse = (text: string): Message => {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
};

/** Pings the node, and terminates the socket if nothing was received since the last ping. Returns a function that stops. */
const pingRegularly = (socket: WebSocket): (() => void) => {
  let isAlive = true;
  const markAlive = (): void => {
    isAlive = true;
  };
  socket.on("pong", markAlive);
  socket.on("message", markAlive);
  const timer = setInterval(() => {
    if (!isAlive) {
      socket.terminate();
      return;
    }
    isAlive = false;
    if (socket.readyState === socket.OPEN) {
      socket.ping();
    }
  }, PING_MS);
  return () => clearInterval(timer);
};

/**
 * One subscription on one node, on a WebSocket of its own. It connects at once, and again after each disconnect, until the
 * signal is aborted.
 */
export class NodeSubscription {
  readonly #options: NodeSubscriptionOptions;
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #request: string;
  #backoffMs = FIRST_BACKOFF_MS;

  constructor(options: NodeSubscriptionOptions) {
    this.#options = options;
    this.#url = new URL(options.url);
    // Credentials are sent as a header.
    this.#url.username = "";
    this.#url.password = "";
    this.#headers = parseNodeUrl(options.url, options.headers).headers;
    this.#request = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: options.params });
    this.#connect();
  }

  /** Resets the delay before the next reconnect. Call it after a valid result. */
  resetBackoff(): void {
    this.#backoffMs = FIRST_BACKOFF_MS;
  }

  #connect(): void {
    const { signal } = this.#options;
    if (signal.aborted) {
      return;
    }
    const { WebSocket } = loadWs();
    const socket = new WebSocket(this.#url, {
      headers: this.#headers,
      perMessageDeflate: false,
      maxPayload: MAX_PAYLOAD_BYTES,
      maxFragments: maxPieces(MAX_PAYLOAD_BYTES),
      maxBufferedChunks: maxPieces(MAX_PAYLOAD_BYTES),
      handshakeTimeout: PING_MS,
    });
    const onAbort = (): void => socket.terminate();
    signal.addEventListener("abort", onAbort, { once: true });
    const stopPings = pingRegularly(socket);

    socket.on("open", () => socket.send(this.#request));
    socket.on("message", (data) => this.#onMessage(parse(data.toString())));
    let fault: string | undefined;
    // The event "close" follows in any case.
    socket.on("error", (error) => {
      fault = connectionFault(error);
    });
    socket.on("close", () => {
      stopPings();
      signal.removeEventListener("abort", onAbort);
      this.#onClose(fault);
    });
  }

  #onMessage(message: Message): void {
    const { onResult, onAccepted, onRejected } = this.#options;
    if (message.params?.result !== undefined) {
      onResult(message.params.result);
    } else if (message.error !== undefined && message.error !== null) {
      onRejected?.();
    } else if (message.id === 1) {
      onAccepted?.();
    }
  }

  #onClose(fault: string | undefined): void {
    const { signal, onClosed } = this.#options;
    onClosed?.(fault);
    if (signal.aborted) {
      return;
    }
    sleep(this.#backoffMs, undefined, { signal }).then(
      () => this.#connect(),
      () => undefined,
    );
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_BACKOFF_MS);
  }
}
