import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { type Chunk, isStream, isWhole } from "../jsonrpc/response.ts";
import { type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";

interface SendQueueOptions {
  readonly socket: WebSocket;
  /**
   * The stream below the WebSocket.
   * It is corked, so that the messages of one turn of the event loop are one system call.
   */
  readonly stream: Duplex;
  /** Limit for unsent bytes: of events, above which the reader is too slow, and of all, above which no further call is handled. */
  readonly maxBufferBytes: number;
  /** Called with the bytes of each fragment that is sent. */
  onSent?(bytes: number): void;
  /** A connection whose client reads nothing for this time is closed. */
  readonly writeTimeoutMs: number;
  /** Counts unsent bytes. */
  readonly use: MemoryUse | undefined;
  /** Called if the reader is too slow. No event is sent after that. */
  onSlow(): void;
  /** Called if the client reads nothing, or if the budget has no room for the unsent bytes. */
  onStalled(): void;
  /** Called when the queue is no longer full. */
  onRoom(): void;
}

type Message = readonly Buffer[];

const TEXT = { binary: false, compress: false };
const MORE = { ...TEXT, fin: false };
const LAST = { ...TEXT, fin: true };
const INTERNAL_ERROR = 1011;
/** What an unsent event costs beside its bytes. Measured: 440 to 560 bytes. */
const EVENT_BYTES = 512;

const NOTHING_SENT = Promise.resolve();

/** Sends the events and responses of one connection. */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #socket: WebSocket;
  #isCorked = false;
  #isSlow = false;
  /**
   * Events that wait for the end of a response that is sent in fragments. Fragments of two messages must not mix
   * (RFC 6455, section 5.4). Undefined if no such response is being sent.
   */
  #buffered: Message[] | undefined;
  #bufferedBytes = 0;
  /** The last response that is sent in fragments. Never rejects. */
  #lastStreamed = NOTHING_SENT;
  #wasFull = false;
  /** The newest burst of events. */
  #burst = 0;
  #unsentEvents = 0;
  #unsentResponseBytes = 0;
  readonly #uncork = (): void => {
    this.#isCorked = false;
    this.#options.stream.uncork();
    this.#watch();
  };

  constructor(options: SendQueueOptions) {
    this.#options = options;
    this.#socket = options.socket;
    if (options.stream instanceof Socket) {
      options.stream.on("timeout", () => options.onStalled());
    }
  }

  /** Whether the unsent bytes exceed the limit, so that no further call may be handled. */
  get isFull(): boolean {
    const isFull = this.#socket.bufferedAmount > this.#options.maxBufferBytes;
    this.#wasFull ||= isFull;
    return isFull;
  }

  /** Whether the unsent bytes of events exceed the limit. A response may be of any size: its reader is not slow. */
  get #hasUnreadEvents(): boolean {
    return this.#socket.bufferedAmount - this.#unsentResponseBytes > this.#options.maxBufferBytes;
  }

  /**
   * Sends an event as fragments of one message. Never waits; calls `onSlow` if the reader does not keep up: if events of earlier bursts
   * exceed the limit. Bytes of the same burst do not count: no reader is that fast. The budget limits them.
   */
  notify(fragments: Message, burst: number): void {
    if (this.#isSlow || this.#socket.readyState !== this.#socket.OPEN) {
      return;
    }
    const isLater = burst > this.#burst;
    this.#burst = Math.max(burst, this.#burst);
    if (this.#buffered !== undefined) {
      this.#buffer(this.#buffered, fragments);
    } else if (isLater && this.#hasUnreadEvents) {
      this.#abort();
    } else {
      this.#cork();
      this.#send(fragments);
    }
  }

  /** Sends a response. Resolves when the bytes are written, or when the connection is closed. */
  async sendResponse(chunks: readonly Chunk[]): Promise<void> {
    if (this.#buffered === undefined && isWhole(chunks)) {
      await this.#sendFragment(Buffer.concat(chunks), LAST);
      return;
    }
    // Buffer from now on, so that no event is sent between this response and the one before.
    this.#buffered ??= [];
    const sent = this.#lastStreamed.then(() => this.#sendStream(chunks));
    this.#lastStreamed = sent.catch(() => undefined);
    await sent;
  }

  /** Writes the events of this slice together, and counts what is not sent then. */
  #cork(): void {
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#options.stream.cork();
      process.nextTick(this.#uncork);
    }
  }

  #send(fragments: Message): void {
    const last = fragments.length - 1;
    this.#unsentEvents++;
    for (const [index, fragment] of fragments.entries()) {
      this.#options.onSent?.(fragment.length);
      this.#socket.send(fragment, index < last ? MORE : LAST, index < last ? undefined : this.#onEventSent);
    }
  }

  #buffer(messages: Message[], fragments: Message): void {
    for (const { length } of fragments) {
      this.#bufferedBytes += length;
    }
    if (this.#bufferedBytes > this.#options.maxBufferBytes) {
      this.#abort();
    } else {
      messages.push(fragments);
    }
  }

  #flush(): void {
    const messages = this.#buffered ?? [];
    this.#buffered = undefined;
    this.#bufferedBytes = 0;
    for (const fragments of messages) {
      this.#send(fragments);
    }
  }

  #abort(): void {
    this.#isSlow = true;
    this.#buffered = undefined;
    this.#options.onSlow();
  }

  /** Resolves when the bytes are written: false if the connection is closed. `ws` counts what is sent after that as unsent for ever. */
  #sendFragment(bytes: Uint8Array, options: typeof LAST): Promise<boolean> {
    if (this.#socket.readyState !== this.#socket.OPEN) {
      return Promise.resolve(false);
    }
    this.#options.onSent?.(bytes.length);
    this.#unsentResponseBytes += bytes.length;
    return new Promise((resolve) => {
      this.#socket.send(bytes, options, (error) => {
        this.#unsentResponseBytes -= bytes.length;
        this.#onSent();
        resolve(!error);
      });
      this.#watch();
    });
  }

  /** Counts unsent bytes, and limits the time in which the client reads none of them. */
  #watch(): void {
    const { bufferedAmount } = this.#socket;
    if (bufferedAmount === 0) {
      return;
    }
    const { use } = this.#options;
    this.#setTimeout(this.#options.writeTimeoutMs);
    const costBytes = this.#costOf(bufferedAmount);
    if (costBytes > UNCOUNTED_BYTES && use?.trySet(costBytes) === false) {
      this.#options.onStalled();
    }
  }

  #costOf(bufferedAmount: number): number {
    return bufferedAmount + this.#unsentEvents * EVENT_BYTES;
  }

  readonly #onEventSent = (): void => {
    this.#unsentEvents--;
    this.#onSent();
  };

  readonly #onSent = (): void => {
    const { bufferedAmount } = this.#socket;
    const { use, maxBufferBytes } = this.#options;
    if (bufferedAmount === 0 || this.#socket.readyState === this.#socket.CLOSED) {
      this.#setTimeout(0);
      use?.end();
    } else {
      const costBytes = this.#costOf(bufferedAmount);
      if (costBytes > UNCOUNTED_BYTES) {
        use?.trySet(costBytes);
      }
    }
    if (this.#wasFull && bufferedAmount <= maxBufferBytes) {
      this.#wasFull = false;
      this.#options.onRoom();
    }
  };

  #setTimeout(ms: number): void {
    const { stream } = this.#options;
    if (stream instanceof Socket) {
      stream.setTimeout(ms);
    }
  }

  async #sendStream(chunks: readonly Chunk[]): Promise<void> {
    this.#buffered ??= [];
    try {
      for (const chunk of chunks) {
        for await (const part of isStream(chunk) ? chunk : [chunk]) {
          if (!(await this.#sendFragment(part, MORE))) {
            return;
          }
        }
      }
      await this.#sendFragment(Buffer.alloc(0), LAST);
    } catch (error) {
      // Close the connection, so that the client does not take part of a response for the whole.
      this.#socket.close(INTERNAL_ERROR, "the response is incomplete");
      throw error;
    }
    this.#flush();
  }
}

const PING_BYTES = 8;

/** Finds out whether the client of a WebSocket still reads. */
export class Pings {
  readonly #socket: WebSocket;
  /** The data of the last ping. Undefined after its pong. */
  #sent: Buffer | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("pong", (data) => {
      // A client may send any pong at any time (RFC 6455, section 5.5.3). That one shows that it has read the ping.
      if (this.#sent?.equals(data) === true) {
        this.#sent = undefined;
      }
    });
  }

  /** Sends a ping. Terminates the connection if it did not answer the last one. */
  send(): void {
    // While reading is paused, the pong cannot be read. A client that reads nothing is closed by the send queue.
    if (this.#socket.isPaused) {
      return;
    }
    if (this.#sent !== undefined) {
      this.#socket.terminate();
    }
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#sent = randomBytes(PING_BYTES);
      this.#socket.ping(this.#sent);
    }
  }
}
