import { WebSocket } from "ws";
import { createEndpoint } from "./endpoint.ts";
import { parseSealedBlock, type SealedBlock } from "./sealedBlock.ts";

export interface NewHeadsOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onHeader: (header: SealedBlock) => void;
  /** Said once per change. */
  readonly onState: (connected: boolean) => void;
}

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 10_000;
const PING_MS = 10_000;
const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;
const SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}';

const headerOf = (text: string): SealedBlock | undefined => {
  try {
    return parseSealedBlock(JSON.parse(text)?.params?.result);
  } catch {
    return undefined;
  }
};

/** A node's `newHeads` subscription, made again whenever it is lost, until the signal is aborted. */
export const followNewHeads = (options: NewHeadsOptions): void => {
  const { signal, onHeader, onState } = options;
  const { headers } = createEndpoint(options.url, options.headers);
  const bare = new URL(options.url);
  bare.username = "";
  bare.password = "";
  let backoffMs = FIRST_BACKOFF_MS;
  let connected = false;

  const tell = (state: boolean): void => {
    if (state !== connected) {
      connected = state;
      onState(state);
    }
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

    socket.on("open", () => socket.send(SUBSCRIBE));
    socket.on("pong", () => {
      alive = true;
    });
    socket.on("message", (data) => {
      alive = true;
      const header = headerOf(data.toString());
      if (header) {
        backoffMs = FIRST_BACKOFF_MS;
        tell(true);
        onHeader(header);
      }
    });
    // Its text may hold the URL; that the socket is closed says enough.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearInterval(ping);
      signal.removeEventListener("abort", onAbort);
      tell(false);
      if (!signal.aborted) {
        const timer = setTimeout(connect, backoffMs);
        signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
        backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
      }
    });
  };

  connect();
};
