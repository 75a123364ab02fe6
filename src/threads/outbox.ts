import type { Transferable } from "node:worker_threads";

interface OutboxOptions<M> {
  /** Throws if a message cannot be cloned, and then sends none. */
  readonly post: (messages: readonly M[], transfer?: readonly Transferable[]) => void;
  readonly isBatched: boolean;
  /** Called with a message that cannot be cloned. */
  readonly onFailed: (message: M, error: unknown) => void;
}

/**
 * Sends messages in their order. If they are batched, those of one turn of the event loop are sent together. Between processes,
 * each send is a system call on both sides.
 */
export class Outbox<M> {
  readonly #options: OutboxOptions<M>;
  /** Messages of this turn of the event loop. */
  #unsent: M[] = [];
  #isClosed = false;

  constructor(options: OutboxOptions<M>) {
    this.#options = options;
  }

  /** Does nothing after `close`. Memory is transferred only if messages are not batched. */
  send(message: M, transfer?: readonly Transferable[]): void {
    if (this.#isClosed) {
      return;
    }
    if (!this.#options.isBatched) {
      this.sendNow(message, transfer);
      return;
    }
    if (this.#unsent.length === 0) {
      setImmediate(this.flush);
    }
    this.#unsent.push(message);
  }

  /** Sends the messages of this turn of the event loop. */
  readonly flush = (): void => {
    const messages = this.#unsent;
    this.#unsent = [];
    if (messages.length === 0 || this.#isClosed) {
      return;
    }
    try {
      this.#options.post(messages);
    } catch {
      for (const message of messages) {
        this.sendNow(message);
      }
    }
  };

  /** Sends one message, before those of this turn. */
  sendNow(message: M, transfer?: readonly Transferable[]): void {
    const { post, onFailed } = this.#options;
    try {
      post([message], transfer);
    } catch (error) {
      onFailed(message, error);
    }
  }

  close(): void {
    this.#isClosed = true;
  }
}
