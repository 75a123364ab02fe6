import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { connectFeed, decodeFrame, type EndReason, type Frame } from "./feedConnection.ts";
import type { FeedMessage } from "./feedMessage.ts";
import { parseFlashblock } from "./parseFlashblock.ts";

export interface FeedOptions {
  readonly chain: string;
  /** WebSocket URLs of one sequencer's feed. All are read at the same time. */
  readonly urls: readonly string[];
  /** Limit of a message before and after decompression. */
  readonly maxMessageBytes: number;
  /** Returns the chain's current block time. */
  readonly blockTimeMs: () => number;
  /**
   * Called with each valid message, in the order of its connection, which is the position in `urls`.
   * Every connection delivers the same messages; `sequence` uses the first copy.
   */
  readonly onMessage: (message: FeedMessage) => void;
  /** Counts messages while they are read. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

export interface Feed {
  close(): void;
}

const PING_MS = 1_000;
const PONG_DEADLINE_MS = 4_000;
const MIN_BACKOFF_MS = 250;
/** A feed that recovers is used again within a second, after any outage. */
const MAX_BACKOFF_MS = 500;
/** The limit for a server that rejects the connection (HTTP 4xx). */
const MAX_REFUSED_BACKOFF_MS = 10_000;

/** A connection without data for this time counts as dead, whatever the socket reports. */
export const idleDeadlineMs = (blockTimeMs: number): number => Math.max(3 * blockTimeMs, 2_000);

/**
 * Doubles the delay with each failure in a row, up to a limit. `chance` (0 to 1) selects the second half of the delay,
 * so that clients do not reconnect to a restarted feed at the same time.
 */
export const backoffMs = (failures: number, reason: EndReason, chance: number): number => {
  const limitMs = reason === "refused" ? MAX_REFUSED_BACKOFF_MS : MAX_BACKOFF_MS;
  const longestMs = Math.min(MIN_BACKOFF_MS * 2 ** failures, limitMs);
  return longestMs / 2 + (longestMs / 2) * chance;
};

/** Connects to one URL again and again until it is closed. */
class ReconnectingFeed {
  readonly #options: FeedOptions;
  readonly #url: string;
  readonly #position: number;
  readonly #onCount: (by: 1 | -1) => void;
  #isClosed = false;
  /** Connections in a row that delivered no message. */
  #failures = 0;
  #isDown = false;
  #retry: NodeJS.Timeout | undefined;
  #disconnect: (() => void) | undefined;

  constructor(options: FeedOptions, url: string, position: number, onCount: (by: 1 | -1) => void) {
    this.#options = options;
    this.#url = url;
    this.#position = position;
    this.#onCount = onCount;
    this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#disconnect?.();
  }

  #connect(): void {
    const { maxMessageBytes, blockTimeMs } = this.#options;
    let isOpen = false;
    this.#disconnect = connectFeed({
      url: this.#url,
      maxFrameBytes: maxMessageBytes,
      pingMs: PING_MS,
      pongDeadlineMs: PONG_DEADLINE_MS,
      idleMs: () => idleDeadlineMs(blockTimeMs()),
      onOpen: () => {
        isOpen = true;
        this.#onCount(1);
      },
      onFrame: (bytes) => this.#receive(bytes),
      onEnd: (reason, fault) => {
        if (isOpen) {
          this.#onCount(-1);
        }
        this.#reconnect(reason, fault);
      },
    });
  }

  #reconnect(reason: EndReason, fault: string | undefined): void {
    if (this.#isClosed) {
      return;
    }
    const { chain, telemetry } = this.#options;
    if (!this.#isDown) {
      const fields = { chain, feed: this.#position, host: new URL(this.#url).host, reason, fault };
      telemetry.log.warn(fields, "feed lost");
    }
    this.#isDown = true;
    telemetry.metrics.feedReconnects.inc({ chain });
    this.#retry = setTimeout(() => this.#connect(), backoffMs(this.#failures++, reason, Math.random()));
  }

  /** Returns true for a valid message. */
  #receive(bytes: Uint8Array): boolean {
    const { chain, telemetry, memory, maxMessageBytes, onMessage } = this.#options;
    const use = memory?.open("feed", undefined);
    const hasRoom = use?.tryAdd(bytes.length) !== false;
    const frame: Frame = hasRoom ? decodeFrame(bytes, maxMessageBytes) : { refused: "tooLarge" };
    use?.end();
    const parsed = "text" in frame ? parseFlashblock(frame.text) : frame;
    if (!("message" in parsed)) {
      telemetry.metrics.feedMessages.inc({ chain, decision: parsed.refused });
      return false;
    }
    if (this.#failures > 0 || this.#isDown) {
      telemetry.log.info({ chain, feed: this.#position }, "feed connected");
    }
    this.#failures = 0;
    this.#isDown = false;
    onMessage({ ...parsed.message, connection: this.#position });
    return true;
  }
}

/** Reads all feeds of a chain until it is closed. No message of a feed can end it. */
export const createFeed = (options: FeedOptions): Feed => {
  const { feedConnected } = options.telemetry.metrics;
  // The gauge is incremented and decremented: after a reload, the old and the new client of a chain exist for a while.
  feedConnected.inc({ chain: options.chain }, 0);
  const count = (by: 1 | -1): void => feedConnected.inc({ chain: options.chain }, by);
  const feeds = options.urls.map((url, position) => new ReconnectingFeed(options, url, position, count));
  return {
    close: () => {
      for (const feed of feeds) {
        feed.close();
      }
    },
  };
};
