import { fromPlainError, type PlainError, toPlainError } from "./plainError.ts";

/** The functions that one process offers to another, by name. Bodies and results are plain data. */
export interface Protocol {
  readonly [name: string]: (body: never, call: RemoteCall) => unknown;
}

type Body<F> = F extends (body: infer B, ...rest: never[]) => unknown ? B : never;
type Result<F> = F extends (...all: never[]) => infer R ? Awaited<R> : never;

/** A call from another process. */
export interface RemoteCall {
  /** Aborts when the caller gives up, or when its process has ended. */
  readonly signal: AbortSignal;
  /** Sends a value to the caller before the result. */
  report(value: unknown): void;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  /** Called with the values that come before the result. */
  readonly onReport?: (value: unknown) => void;
}

type Message =
  | { readonly kind: "call"; readonly name: string; readonly body: unknown; readonly id: number | undefined }
  | { readonly kind: "abort"; readonly id: number }
  | { readonly kind: "report"; readonly id: number; readonly value: unknown }
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | { readonly kind: "error"; readonly id: number; readonly error: PlainError };

interface OpenCall {
  resolve(value: unknown): void;
  reject(error: Error): void;
  readonly onReport: CallOptions["onReport"];
}

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

const ENDED = "the other process has ended";

/**
 * Calls functions of another process, and answers its calls. Calls arrive in the order in which they were sent.
 * The messages of one turn of the event loop are sent together, because each send is a system call on both sides.
 */
export class ProcessChannel<Theirs extends Protocol, Ours extends Protocol> {
  readonly #post: (messages: readonly object[]) => void;
  readonly #onError: (error: unknown) => void;
  readonly #open = new Map<number, OpenCall>();
  readonly #answering = new Map<number, AbortController>();
  #functions: Partial<Ours> = {};
  #lastId = 0;
  #isClosed = false;
  /** Messages of this turn of the event loop. */
  #unsent: Message[] = [];

  /** `post` throws if a message cannot be cloned, and then sends none. `onError` gets the errors that end no call. */
  constructor(post: (messages: readonly object[]) => void, onError: (error: unknown) => void) {
    this.#post = post;
    this.#onError = onError;
  }

  /** Adds functions that the other process may call. */
  offer(functions: Partial<Ours>): void {
    this.#functions = { ...this.#functions, ...functions };
  }

  /** Calls a function without waiting for it. Does nothing if the other process has ended. */
  notify<N extends keyof Theirs & string>(name: N, body: Body<Theirs[N]>): void {
    this.#send({ kind: "call", name, body, id: undefined });
  }

  /** The same, without waiting for the end of this turn of the event loop. */
  notifyNow<N extends keyof Theirs & string>(name: N, body: Body<Theirs[N]>): void {
    this.notify(name, body);
    this.#flush();
  }

  /** Calls a function and returns its result. Rejects with its error, with the reason of the signal, or if the process ends. */
  async call<N extends keyof Theirs & string>(
    name: N,
    body: Body<Theirs[N]>,
    { signal, onReport }: CallOptions = {},
  ): Promise<Result<Theirs[N]>> {
    signal?.throwIfAborted();
    if (this.#isClosed) {
      throw new Error(ENDED);
    }
    this.#lastId++;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#open.set(id, { resolve, reject, onReport });
    const onAbort = (): void => {
      this.#send({ kind: "abort", id });
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#send({ kind: "call", name, body, id });
    try {
      return (await promise) as Result<Theirs[N]>;
    } finally {
      this.#open.delete(id);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Takes the messages of the other process. */
  receive(messages: unknown): void {
    for (const message of messages as readonly Message[]) {
      try {
        this.#receive(message);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  /** Rejects all open calls and aborts those of the other process. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#open.values()) {
      reject(new Error(ENDED));
    }
    for (const controller of this.#answering.values()) {
      controller.abort();
    }
  }

  #receive(received: Message): void {
    switch (received.kind) {
      case "call":
        void this.#answer(received);
        break;
      case "abort":
        this.#answering.get(received.id)?.abort();
        break;
      case "report":
        this.#report(received);
        break;
      case "result":
        this.#open.get(received.id)?.resolve(received.value);
        break;
      case "error":
        this.#open.get(received.id)?.reject(fromPlainError(received.error));
        break;
    }
  }

  #report({ id, value }: Extract<Message, { kind: "report" }>): void {
    const call = this.#open.get(id);
    try {
      call?.onReport?.(value);
    } catch (error) {
      call?.reject(toError(error));
    }
  }

  async #answer({ name, body, id }: Extract<Message, { kind: "call" }>): Promise<void> {
    const offered = this.#functions[name] as ((body: unknown, call: RemoteCall) => unknown) | undefined;
    const controller = new AbortController();
    const report = (value: unknown): void => this.#reply(id, (of) => ({ kind: "report", id: of, value }));
    if (id !== undefined) {
      this.#answering.set(id, controller);
    }
    try {
      if (offered === undefined) {
        throw new Error(`this process does not offer ${name}`);
      }
      const result = offered(body, { signal: controller.signal, report });
      const value = result instanceof Promise ? await result : result;
      this.#reply(id, (of) => ({ kind: "result", id: of, value }));
    } catch (error) {
      if (id === undefined) {
        this.#onError(error);
      }
      this.#reply(id, (of) => ({ kind: "error", id: of, error: toPlainError(error) }));
    } finally {
      if (id !== undefined) {
        this.#answering.delete(id);
      }
    }
  }

  #reply(id: number | undefined, create: (id: number) => Message): void {
    if (id !== undefined) {
      this.#send(create(id));
    }
  }

  #send(message: Message): void {
    if (this.#isClosed) {
      return;
    }
    if (this.#unsent.length === 0) {
      setImmediate(this.#flush);
    }
    this.#unsent.push(message);
  }

  readonly #flush = (): void => {
    const messages = this.#unsent;
    this.#unsent = [];
    if (messages.length === 0 || this.#isClosed) {
      return;
    }
    try {
      this.#post(messages);
    } catch {
      for (const message of messages) {
        this.#postAlone(message);
      }
    }
  };

  /** Sends one message of a batch that could not be sent. */
  #postAlone(message: Message): void {
    try {
      this.#post([message]);
    } catch (error) {
      this.#fail(message, error);
    }
  }

  /** Ends the call of a message that cannot be sent. */
  #fail(message: Message, error: unknown): void {
    const { kind, id } = message;
    const call = kind === "call" && id !== undefined ? this.#open.get(id) : undefined;
    const isReply = kind === "result" || kind === "report" || (kind === "error" && message.error.kind === "rpc");
    if (call !== undefined) {
      call.reject(toError(error));
    } else if (isReply) {
      this.#postAlone({ kind: "error", id: message.id, error: toPlainError(error) });
    } else {
      this.#onError(error);
    }
  }
}
