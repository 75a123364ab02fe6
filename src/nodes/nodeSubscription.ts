import { WebSocket } from "ws";
import { parseNodeUrl } from "./nodeUrl.ts";

export interface NodeSubscriptionOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Of eth_subscribe. */
  readonly params: readonly unknown[];
  readonly signal: AbortSignal;
  readonly onResult: (result: unknown) => void;
  /** The node has taken the subscription. */
  readonly onTaken?: () => void;
  /** The node will not have it. */
  readonly onRefused?: () => void;
  readonly onClosed?: () => void;
}

export interface NodeSubscription {
  /** What came was good: the next loss is followed by a short wait. */
  restored(): void;
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

/** One subscription on a node's WebSocket, made again whenever it is lost, until the signal is aborted. */
export const followSubscription = (options: NodeSubscriptionOptions): NodeSubscription => {
  const { signal, params, onResult, onTaken, onRefused, onClosed } = options;
  const { headers } = parseNodeUrl(options.url, options.headers);
  const bare = new URL(options.url);
  bare.username = "";
  bare.password = "";
  const subscribe = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params });
  let backoffMs = FIRST_BACKOFF_MS;

  const take = (message: Message): void => {
    if (message.params?.result !== undefined) onResult(message.params.result);
    else if (message.error !== undefined) onRefused?.();
    else if (message.id === 1) onTaken?.();
  };

  const connect = (): void => {
    if (signal.aborted) {
      return;
    }
    const socket = new WebSocket(bare, {
      headers,
      perMessageDeflate: false,
      maxPayload: MAX_PAYLOAD_BYTES,
      handshakeTimeout: PING_MS,
    });
    let alive = true;
    const onAbort = (): void => socket.terminate();
    signal.addEventListener("abort", onAbort, { once: true });
    const ping = setInterval(() => {
      if (!alive) {
        socket.terminate();
        return;
      }
      alive = false;
      if (socket.readyState === WebSocket.OPEN) {
        socket.ping();
      }
    }, PING_MS);

    socket.on("open", () => socket.send(subscribe));
    socket.on("pong", () => {
      alive = true;
    });
    socket.on("message", (data) => {
      alive = true;
      take(parse(data.toString()));
    });
    // Its text may hold the URL; that the socket is closed says enough.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearInterval(ping);
      signal.removeEventListener("abort", onAbort);
      onClosed?.();
      if (!signal.aborted) {
        const timer = setTimeout(connect, backoffMs);
        signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
        backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
      }
    });
  };

  connect();
  return {
    restored: () => {
      backoffMs = FIRST_BACKOFF_MS;
    },
  };
};
