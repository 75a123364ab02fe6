import type { Telemetry } from "../telemetry/telemetry.ts";
import { connectFeed, type EndReason } from "./feedConnection.ts";
import { decodeFrame } from "./frame.ts";
import { type Flashblock, parseMessage } from "./message.ts";

export interface FeedOptions {
  readonly chain: string;
  /** WebSocket URLs of one sequencer's feed, all read at once. */
  readonly urls: readonly string[];
  /** Of a message, before and after decompression. */
  readonly maxMessageBytes: number;
  /** The chain's block time as it is known now. */
  readonly blockTimeMs: () => number;
  /** A valid message, in the order of its socket. Equal ones come from every socket; `sequence` keeps the first. */
  readonly onMessage: (message: Flashblock, url: number) => void;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

export interface Feed {
  /** How many sockets are open. */
  connected(): number;
  close(): void;
}

const PING_MS = 1_000;
const PONG_DEADLINE_MS = 4_000;
const MIN_BACKOFF_MS = 250;
/** A feed that is back is used within a second, however long it was gone. */
const MAX_BACKOFF_MS = 500;
/** A server that refuses us is not asked that often. */
const MAX_REFUSED_BACKOFF_MS = 10_000;

/** No data for so long means that a feed is dead, whatever its socket says. */
export const idleDeadlineMs = (blockTimeMs: number): number => Math.max(3 * blockTimeMs, 2_000);

/** Doubles with each failure in a row up to a bound. Half of it is chance, so that not all clients meet a restarted feed at once. */
export const backoffMs = (failures: number, reason: EndReason, chance: number): number => {
  const bound = reason === "refused" ? MAX_REFUSED_BACKOFF_MS : MAX_BACKOFF_MS;
  const most = Math.min(MIN_BACKOFF_MS * 2 ** failures, bound);
  return most / 2 + (most / 2) * chance;
};

const createSocket = (options: FeedOptions, url: string, position: number, onCount: (by: 1 | -1) => void) => {
  const { chain, telemetry, maxMessageBytes } = options;
  const { log, metrics } = telemetry;
  let closed = false;
  let failures = 0;
  let isDown = false;
  let retry: NodeJS.Timeout | undefined;
  let stop: () => void = () => {};

  const receive = (bytes: Uint8Array): boolean => {
    const frame = decodeFrame(bytes, maxMessageBytes);
    const parsed = "text" in frame ? parseMessage(frame.text) : { fault: frame.refused };
    if (!("message" in parsed)) {
      metrics.feedMessages.inc({ chain, decision: "fault" in parsed ? parsed.fault : parsed.ignored });
      return false;
    }
    if (failures > 0 || isDown) log.info({ chain, feed: position }, "feed delivers");
    failures = 0;
    isDown = false;
    options.onMessage(parsed.message, position);
    return true;
  };

  const open = (): void => {
    let isOpen = false;
    stop = connectFeed({
      url,
      maxFrameBytes: maxMessageBytes,
      pingMs: PING_MS,
      pongDeadlineMs: PONG_DEADLINE_MS,
      idleMs: () => idleDeadlineMs(options.blockTimeMs()),
      onOpen: () => {
        isOpen = true;
        onCount(1);
      },
      onFrame: receive,
      onEnd: (reason) => {
        if (isOpen) onCount(-1);
        if (closed) return;
        if (!isDown) log.warn({ chain, feed: position, reason }, "feed lost");
        isDown = true;
        metrics.feedReconnects.inc({ chain });
        retry = setTimeout(open, backoffMs(failures++, reason, Math.random()));
      },
    });
  };
  open();

  return () => {
    closed = true;
    clearTimeout(retry);
    stop();
  };
};

/** Reads all feeds of a chain for as long as it is open. Nothing that a feed sends can end it. */
export const createFeed = (options: FeedOptions): Feed => {
  let open = 0;
  const { feedConnected } = options.telemetry.metrics;
  // Counted up and down: after a reload two clients of one chain live side by side for a while.
  feedConnected.inc({ chain: options.chain }, 0);
  const count = (by: 1 | -1): void => {
    open += by;
    feedConnected.inc({ chain: options.chain }, by);
  };
  const closers = options.urls.map((url, position) => createSocket(options, url, position, count));
  return {
    connected: () => open,
    close: () => {
      for (const close of closers) close();
    },
  };
};
