import type { Transferable } from "node:worker_threads";
import type { CopiedBytes } from "./copyBytes.ts";
import { fromPlainError, type PlainError, toPlainError } from "./plainError.ts";

/** The functions that one side offers to the other, by name. Bodies and results are plain data. */
export interface Protocol {
  readonly [name: string]: (body: never, call: RemoteCall) => unknown;
}

type Body<F> = F extends (body: infer B, ...rest: never[]) => unknown ? B : never;
type Result<F> = F extends (...all: never[]) => infer R ? (Awaited<R> extends Moved<infer V> ? V : Awaited<R>) : never;

/** A call from the other side. */
export interface RemoteCall {
  /** Aborts when the caller gives up, or when its side has ended. */
  readonly signal: AbortSignal;
  /** Whether the caller has given up. Between threads this is known during a run that takes no messages. */
  isAborted(): boolean;
  /** Sends a value to the caller before the result. */
  report(value: unknown): void;
  /** Asks the caller for a value. Rejects if it has none, or gives up. */
  ask(value: unknown): Promise<unknown>;
}

/** A result whose memory is moved to the caller instead of copied. */
export class Moved<T> {
  readonly value: T;
  readonly transfer: readonly Transferable[];

  constructor(value: T, transfer: readonly Transferable[]) {
    this.value = value;
    this.transfer = transfer;
  }
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the values that come before the result. */
  readonly onReport?: (value: unknown) => void;
  /** Returns the value that the call asks for. If it rejects, the call is aborted and rejects with the same error. */
  readonly onAsk?: ((value: unknown) => Promise<unknown>) | undefined;
  /** Called when the other side has ended the call, also after an abort, and if the call is not sent. */
  readonly onEnd?: () => void;
  /** Bytes of the body that are moved. */
  readonly moved?: readonly CopiedBytes[];
}

/** Shared memory: the ids of aborted calls, each at its place. */
type Aborts = Int32Array<SharedArrayBuffer>;

type Message =
  | {
      readonly kind: "call";
      readonly name: string;
      readonly body: unknown;
      readonly id: number | undefined;
    }
  | { readonly kind: "aborts"; readonly id: undefined; readonly places: Aborts }
  | { readonly kind: "ask"; readonly of: number; readonly id: number; readonly value: unknown }
  | { readonly kind: "abort"; readonly id: number }
  | { readonly kind: "report"; readonly id: number; readonly value: unknown }
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | { readonly kind: "error"; readonly id: number; readonly error: PlainError };

interface OpenCall extends CallOptions {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** The caller has its error, and the other side has not ended the call. */
  isAborted: boolean;
}

/** What two threads exchange messages through: a `Worker`, or a `MessagePort`. */
export interface ThreadPort {
  postMessage(message: unknown, transfer?: readonly Transferable[]): void;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

/** More calls that were aborted and have not ended share places. The abort of an earlier one is only a message then. */
const ABORT_PLACES = 64;
const ENDED = "the other side has ended";

/** Calls functions of another thread, and answers its calls. Calls arrive in the order in which they were sent. */
export class Channel<Theirs extends Protocol, Ours extends Protocol> {
  readonly #port: ThreadPort;
  readonly #functions: Partial<Ours>;
  readonly #aborts: Aborts = new Int32Array(new SharedArrayBuffer(ABORT_PLACES * Int32Array.BYTES_PER_ELEMENT));
  /** Of the other side. */
  #theirAborts: Aborts | undefined;
  readonly #open = new Map<number, OpenCall>();
  readonly #answering = new Map<number, AbortController>();
  #lastId = 0;
  #isClosed = false;

  /** The other side may call `functions`. An error that ends no call is thrown, which ends the thread. */
  constructor(port: ThreadPort, functions: Partial<Ours>) {
    this.#port = port;
    this.#functions = functions;
    this.#send({ kind: "aborts", id: undefined, places: this.#aborts });
    port.on("message", (message) => this.#receive(message as Message));
  }

  /** Calls a function without waiting for it. Does nothing if the other side has ended. */
  notify<N extends keyof Theirs & string>(name: N, body: Body<Theirs[N]>): void {
    this.#send({ kind: "call", name, body, id: undefined });
  }

  /** Calls a function and returns its result. Rejects with its error, with the reason of the signal, or if the other side ends. */
  async call<N extends keyof Theirs & string>(
    name: N,
    body: Body<Theirs[N]>,
    options: CallOptions = {},
  ): Promise<Result<Theirs[N]>> {
    const value = await this.#request((id) => ({ kind: "call", name, body, id }), options);
    return value as Result<Theirs[N]>;
  }

  /** Rejects all open calls and aborts those of the other side. */
  close(error = new Error(ENDED)): void {
    this.#isClosed = true;
    for (const id of [...this.#open.keys()]) {
      this.#end(id)?.reject(error);
    }
    for (const controller of this.#answering.values()) {
      controller.abort();
    }
  }

  async #request(create: (id: number) => Message, options: CallOptions): Promise<unknown> {
    const { signal, moved } = options;
    if (signal?.aborted || this.#isClosed) {
      options.onEnd?.();
      throw signal?.aborted ? signal.reason : new Error(ENDED);
    }
    this.#lastId++;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#open.set(id, { ...options, resolve, reject, isAborted: false });
    const onAbort = (): void => this.#abort(id, signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#send(
      create(id),
      moved?.map(({ buffer }) => buffer),
    );
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** The caller of an open call gives up. */
  #abort(id: number, reason: unknown): void {
    const call = this.#open.get(id);
    if (call === undefined || call.isAborted) {
      return;
    }
    call.isAborted = true;
    call.reject(reason);
    Atomics.store(this.#aborts, id % ABORT_PLACES, id);
    this.#send({ kind: "abort", id });
  }

  /** The other side has ended a call. */
  #end(id: number): OpenCall | undefined {
    const call = this.#open.get(id);
    this.#open.delete(id);
    call?.onEnd?.();
    return call;
  }

  #receive(received: Message): void {
    switch (received.kind) {
      case "call":
        void this.#answer(received);
        break;
      case "ask":
        void this.#supply(received);
        break;
      case "aborts":
        this.#theirAborts = received.places;
        break;
      case "abort":
        this.#answering.get(received.id)?.abort();
        break;
      case "report":
        this.#report(received);
        break;
      case "result":
        this.#end(received.id)?.resolve(received.value);
        break;
      case "error":
        this.#end(received.id)?.reject(fromPlainError(received.error));
        break;
    }
  }

  #report({ id, value }: Extract<Message, { kind: "report" }>): void {
    const call = this.#open.get(id);
    try {
      if (call?.isAborted === false) {
        call.onReport?.(value);
      }
    } catch (error) {
      this.#abort(id, error);
    }
  }

  /** Answers what a call of this side asks for. */
  async #supply({ of, id, value }: Extract<Message, { kind: "ask" }>): Promise<void> {
    const call = this.#open.get(of);
    try {
      if (call?.onAsk === undefined || call.isAborted) {
        throw new Error("the caller does not answer");
      }
      this.#send({ kind: "result", id, value: await call.onAsk(value) });
    } catch (error) {
      this.#send({ kind: "error", id, error: toPlainError(error) });
      this.#abort(of, error);
    }
  }

  async #answer({ name, body, id }: Extract<Message, { kind: "call" }>): Promise<void> {
    const offered = this.#functions[name] as ((body: unknown, call: RemoteCall) => unknown) | undefined;
    const controller = new AbortController();
    const { signal } = controller;
    if (id !== undefined) {
      this.#answering.set(id, controller);
    }
    try {
      if (offered === undefined) {
        throw new Error(`the other side does not offer ${name}`);
      }
      const result = offered(body, {
        signal,
        isAborted: () => signal.aborted || this.#hasAborted(id),
        report: (value) => this.#reply(id, (of) => ({ kind: "report", id: of, value })),
        ask: (value) => this.#request((ask) => ({ kind: "ask", of: id ?? 0, id: ask, value }), { signal }),
      });
      const value = result instanceof Promise ? await result : result;
      const moved = value instanceof Moved ? value : undefined;
      this.#reply(id, (of) => ({ kind: "result", id: of, value: moved ? moved.value : value }), moved?.transfer);
    } catch (error) {
      if (id === undefined) {
        throw error;
      }
      this.#reply(id, (of) => ({ kind: "error", id: of, error: toPlainError(error) }));
    } finally {
      if (id !== undefined) {
        this.#answering.delete(id);
      }
    }
  }

  /** Whether the caller has noted in shared memory that it gave up. */
  #hasAborted(id: number | undefined): boolean {
    const places = this.#theirAborts;
    return places !== undefined && id !== undefined && Atomics.load(places, id % ABORT_PLACES) === id;
  }

  #reply(id: number | undefined, create: (id: number) => Message, transfer?: readonly Transferable[]): void {
    if (id !== undefined) {
      this.#send(create(id), transfer);
    }
  }

  #send(message: Message, transfer?: readonly Transferable[]): void {
    if (this.#isClosed) {
      return;
    }
    try {
      this.#port.postMessage(message, transfer);
    } catch (error) {
      this.#fail(message, error);
    }
  }

  /** Ends the call of a message that cannot be cloned. */
  #fail(message: Message, error: unknown): void {
    const { kind, id } = message;
    const call = (kind === "call" || kind === "ask") && id !== undefined ? this.#end(id) : undefined;
    const isReply = kind === "result" || kind === "report" || (kind === "error" && message.error.kind === "rpc");
    if (call !== undefined) {
      call.reject(error);
    } else if (isReply) {
      this.#send({ kind: "error", id: message.id, error: toPlainError(error) });
    } else {
      throw error;
    }
  }
}
