import { RpcError, upstreamTimeout } from "../jsonrpc/rpcError.ts";

type Listener = () => void;

/** An abort signal that costs nothing until somebody uses it. Its AbortController is created on first use. */
export class LazySignal {
  /** The time at which the owner aborts it with a timeout; `Infinity` for none. */
  readonly deadlineMs: number;
  #controller: AbortController | undefined;
  /** Most signals have one listener, which needs no set. */
  #listener: Listener | undefined;
  #others: Set<Listener> | undefined;
  #isAborted = false;
  #reason: unknown;

  constructor(deadlineMs = Number.POSITIVE_INFINITY) {
    this.deadlineMs = deadlineMs;
  }

  /** Itself, so that it can stand for a context's signals. */
  get lazySignal(): this {
    return this;
  }

  get isAborted(): boolean {
    return this.#isAborted;
  }

  /** The reason given to `abort`. */
  get reason(): unknown {
    return this.#reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) {
        this.#controller.abort(this.#reason);
      }
    }
    return this.#controller.signal;
  }

  /** Calls `listener` once when it is aborted. A listener must not throw. */
  add(listener: Listener): void {
    if (this.#listener === undefined) {
      this.#listener = listener;
      return;
    }
    this.#others ??= new Set();
    this.#others.add(listener);
  }

  remove(listener: Listener): void {
    if (this.#listener === listener) {
      this.#listener = undefined;
    } else {
      this.#others?.delete(listener);
    }
  }

  /** Has an effect once. The default reason is that of AbortController. */
  abort(reason: unknown = new DOMException("This operation was aborted", "AbortError")): void {
    if (this.#isAborted) {
      return;
    }
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    const first = this.#listener;
    const others = this.#others;
    this.#listener = undefined;
    this.#others = undefined;
    first?.();
    for (const listener of others ?? []) {
      listener();
    }
  }
}

/** A signal that owns its deadline: it aborts itself then, with an error of the status 504. Must be ended by `end`. */
export class DeadlineSignal extends LazySignal {
  #timer: NodeJS.Timeout | undefined;

  /** `onDeadline` is called before the listeners, with the error. */
  constructor(deadlineMs: number, onDeadline?: (error: RpcError) => void) {
    super(deadlineMs);
    if (deadlineMs < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => {
        const error = upstreamTimeout("no node answered in time");
        onDeadline?.(error);
        this.abort(error);
      }, msUntil(deadlineMs));
    }
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** A signal that aborts after this time. AbortSignal.timeout throws for a time that is not whole, such as a measured one. */
export const timeoutSignal = (afterMs: number): AbortSignal => AbortSignal.timeout(Math.ceil(afterMs));

/** The delay of a timer that must not fire before this time of `performance.now()`. */
export const msUntil = (atMs: number): number => Math.max(0, Math.ceil(atMs - performance.now()));

/** Half of the time until the deadline. A node that has not responded by then leaves as much time to the next one. */
export const msUntilHalf = (deadlineMs: number): number => Math.ceil((deadlineMs - performance.now()) / 2);

const TIMEOUT_STATUS = 504;

/** Whether a request ended at its deadline. */
export const isTimeout = (reason: unknown): boolean => reason instanceof RpcError && reason.status === TIMEOUT_STATUS;

/** What ends a request. `signal` may be a getter that creates an AbortController: `onAbort` needs none. */
export interface Abortable {
  readonly signal: AbortSignal;
  readonly lazySignal?: LazySignal | undefined;
}

/** Calls `listener` when the context is aborted, without creating an AbortSignal if the context has a lazy one. */
export const onAbort = (context: Abortable, listener: Listener): void => {
  const { lazySignal } = context;
  if (lazySignal === undefined) {
    context.signal.addEventListener("abort", listener, { once: true });
  } else {
    lazySignal.add(listener);
  }
};

/** Removes a listener of `onAbort`. */
export const offAbort = (context: Abortable, listener: Listener): void => {
  const { lazySignal } = context;
  if (lazySignal === undefined) {
    context.signal.removeEventListener("abort", listener);
  } else {
    lazySignal.remove(listener);
  }
};

export const isAborted = (context: Abortable): boolean => context.lazySignal?.isAborted ?? context.signal.aborted;

export const abortReason = (context: Abortable): unknown => {
  const { lazySignal } = context;
  return lazySignal === undefined ? context.signal.reason : lazySignal.reason;
};
