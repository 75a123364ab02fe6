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
  readonly #first: Waiter<T>;
  /** The callers that joined. Most tasks have none. */
  #followers: Set<Waiter<T>> | undefined;
  #waiting = 1;

  /** Others find the task by its key in `inFlight` until it ends. */
  constructor(caller: TaskCaller, key: string, inFlight: Map<string, SharedTask<T>>) {
    this.deadlineMs = caller.deadlineMs;
    this.ending = new DeadlineSignal(caller.deadlineMs);
    this.#key = key;
    this.#inFlight = inFlight;
    // The first listener: the callers get this error, and not that of the task, which is then ended.
    this.ending.add(() => this.#fail(this.ending.reason));
    this.#first = new Waiter(caller, this);
    inFlight.set(key, this);
  }

  /** Must be called once, by the caller that created it. */
  start(result: Promise<T>): Promise<T> {
    result.then(
      (value) => {
        this.#end();
        this.#first.resolve(value);
        for (const waiter of this.#followers ?? []) {
          waiter.resolve(value);
        }
      },
      (error: unknown) => this.#fail(error),
    );
    return this.#first.result;
  }

  join(caller: TaskCaller): Promise<T> {
    const waiter = new Waiter(caller, this);
    this.#followers ??= new Set();
    this.#followers.add(waiter);
    this.#waiting++;
    return waiter.result;
  }

  /** Records that a caller has disconnected, or reached its own deadline. */
  leave(waiter: Waiter<T>): void {
    this.#followers?.delete(waiter);
    this.#waiting--;
    if (this.#waiting === 0) {
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

  #end(): void {
    this.ending.end();
    this.close();
  }

  #fail(error: unknown): void {
    this.#end();
    this.#first.reject(error);
    for (const waiter of this.#followers ?? []) {
      waiter.reject(error);
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
