import { type Abortable, abortReason, DeadlineSignal, msUntil, offAbort, onAbort } from "../core/lazySignal.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";

/** Who waits for the result of a task, and until when. */
export interface TaskCaller extends Abortable {
  readonly deadlineMs: number;
}

/**
 * A task in flight, and the callers that wait for its result. It is ended when the last of them has left, and at the deadline
 * of the caller that started it.
 */
export class SharedTask<T> {
  readonly deadlineMs: number;
  /** Ends the task. */
  readonly ending: DeadlineSignal;
  readonly #inFlight: Map<string, SharedTask<T>>;
  readonly #key: string;
  #callers: Waiter<T>[] = [];
  /** The result for the caller that starts the task, until it is started. */
  #first: Promise<T> | undefined;

  /** Others find the task by its key in `inFlight` until it ends. */
  constructor(caller: TaskCaller, key: string, inFlight: Map<string, SharedTask<T>>) {
    this.deadlineMs = caller.deadlineMs;
    // The callers get this error, and not that of the task, which is then ended.
    this.ending = new DeadlineSignal(caller.deadlineMs, (error) => this.#fail(error));
    this.#key = key;
    this.#inFlight = inFlight;
    this.#first = this.join(caller);
    inFlight.set(key, this);
  }

  /** Must be called once, by the caller that created it. */
  start(result: Promise<T>): Promise<T> {
    const first = this.#first ?? result;
    this.#first = undefined;
    result.then(
      (value) => {
        for (const caller of this.#end()) {
          caller.resolve(value);
        }
      },
      (error: unknown) => this.#fail(error),
    );
    return first;
  }

  join(caller: TaskCaller): Promise<T> {
    const waiter = new Waiter(caller, this);
    this.#callers.push(waiter);
    return waiter.result;
  }

  /** Records that a caller has disconnected, or reached its own deadline. */
  leave(waiter: Waiter<T>): void {
    this.#callers = this.#callers.filter((caller) => caller !== waiter);
    if (this.#callers.length === 0) {
      this.#end();
      this.ending.abort();
    }
  }

  /** No further caller finds it. */
  close(): void {
    if (this.#inFlight.get(this.#key) === this) {
      this.#inFlight.delete(this.#key);
    }
  }

  /**
   * Returns the callers, and forgets them. V8 can keep an earlier table of the map until a full collection, with tasks that have
   * ended. What they refer to would outlive the young generation.
   */
  #end(): readonly Waiter<T>[] {
    this.ending.end();
    this.close();
    const callers = this.#callers;
    this.#callers = [];
    return callers;
  }

  #fail(error: unknown): void {
    for (const caller of this.#end()) {
      caller.reject(error);
    }
  }
}

/** One caller that waits for the result, up to its own deadline. */
class Waiter<T> {
  readonly #result = Promise.withResolvers<T>();
  readonly #caller: TaskCaller;
  readonly #task: SharedTask<T>;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = (): void => this.#cancel(abortReason(this.#caller));

  constructor(caller: TaskCaller, task: SharedTask<T>) {
    this.#caller = caller;
    this.#task = task;
    // The task ends at its own deadline.
    if (caller.deadlineMs < task.deadlineMs) {
      this.#timer = setTimeout(
        () => this.#cancel(upstreamTimeout("no node answered in time")),
        msUntil(caller.deadlineMs),
      );
    }
    onAbort(caller, this.#onAbort);
  }

  get result(): Promise<T> {
    return this.#result.promise;
  }

  resolve(value: T): void {
    this.#stop();
    this.#result.resolve(value);
  }

  reject(error: unknown): void {
    this.#stop();
    this.#result.reject(error);
  }

  #cancel(reason: unknown): void {
    // First the reason: the end of the task would reject this caller with its own.
    this.reject(reason);
    this.#task.leave(this);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    offAbort(this.#caller, this.#onAbort);
  }
}
