import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { type Chunk, isStream } from "../jsonrpc/formatResponse.ts";

export interface SendQueueOptions {
  readonly socket: WebSocket;
  /** What the WebSocket writes to: the messages of one turn of the event loop leave in one system call. */
  readonly stream: Duplex;
  /** Bytes that may wait for the reader before more is sent unasked. */
  readonly maxBufferBytes: number;
  /** The reader has fallen behind: nothing more is sent. */
  onSlow(): void;
}

/** What goes out on one connection. */
export interface SendQueue {
  /** An event, as fragments of one message. Never waits: a reader that does not keep up is given up. */
  notify(fragments: readonly Buffer[]): void;
  /** An answer. Resolves when it has been handed to the system, or the connection is gone. */
  answer(chunks: readonly Chunk[]): Promise<void>;
}

const TEXT = { binary: false, compress: false };
const MORE = { ...TEXT, fin: false };
const LAST = { ...TEXT, fin: true };
const INTERNAL_ERROR = 1011;

const isWhole = (chunks: readonly Chunk[]): chunks is readonly Uint8Array[] => !chunks.some(isStream);

export const createSendQueue = ({ socket, stream, maxBufferBytes, onSlow }: SendQueueOptions): SendQueue => {
  let isCorked = false;
  let isSlow = false;
  /** Events that wait for the end of an answer that is sent in fragments: another message may not come between (RFC 6455 section 5.4). */
  let held: (readonly Buffer[])[] | undefined;
  let heldBytes = 0;
  let streamed: Promise<void> = Promise.resolve();

  const uncork = (): void => {
    isCorked = false;
    stream.uncork();
  };

  const giveUp = (): void => {
    isSlow = true;
    held = undefined;
    onSlow();
  };

  /** What waited before this turn of the event loop is the reader's fault; what this turn adds is not. */
  const cork = (): boolean => {
    if (isCorked) return true;
    if (socket.bufferedAmount > maxBufferBytes) return false;
    isCorked = true;
    stream.cork();
    process.nextTick(uncork);
    return true;
  };

  const send = (fragments: readonly Buffer[]): void => {
    for (const [at, fragment] of fragments.entries()) socket.send(fragment, at < fragments.length - 1 ? MORE : LAST);
  };

  const hold = (waiting: (readonly Buffer[])[], fragments: readonly Buffer[]): void => {
    for (const { length } of fragments) heldBytes += length;
    if (heldBytes > maxBufferBytes) giveUp();
    else waiting.push(fragments);
  };

  const release = (): void => {
    const waiting = held ?? [];
    held = undefined;
    heldBytes = 0;
    for (const fragments of waiting) send(fragments);
  };

  /** False when the connection is gone. */
  const sent = (bytes: Uint8Array, options: typeof LAST): Promise<boolean> =>
    new Promise((resolve) => {
      socket.send(bytes, options, (error) => resolve(!error));
    });

  const sendStream = async (chunks: readonly Chunk[]): Promise<void> => {
    held ??= [];
    try {
      for (const chunk of chunks) {
        for await (const part of isStream(chunk) ? chunk : [chunk]) if (!(await sent(part, MORE))) return;
      }
      await sent(Buffer.alloc(0), LAST);
    } catch (error) {
      // What is incomplete must not look whole.
      socket.close(INTERNAL_ERROR, "the answer broke off");
      throw error;
    }
    release();
  };

  return {
    notify: (fragments) => {
      if (isSlow || socket.readyState !== socket.OPEN) return;
      if (held !== undefined) hold(held, fragments);
      else if (cork()) send(fragments);
      else giveUp();
    },
    answer: async (chunks) => {
      if (held === undefined && isWhole(chunks)) {
        await sent(Buffer.concat(chunks), LAST);
        return;
      }
      // From now on, so that nothing comes between it and the one before.
      held ??= [];
      streamed = streamed.then(() => sendStream(chunks));
      const turn = streamed;
      streamed = turn.catch(() => {});
      await turn;
    },
  };
};
