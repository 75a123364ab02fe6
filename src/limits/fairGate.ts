import { type RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { FairQueue, type QueueOwner } from "./fairQueue.ts";

export interface FairGateOptions {
  /** Tasks at a time. */
  readonly max: number;
  /** Tasks that wait. Default: no limit. */
  readonly maxWaiting?: number;
  /** The text of the error (503) of a task that cannot wait. */
  readonly overloaded?: string;
}

/** The owner of a task that ends its wait when it is aborted. */
export interface SlotOwner extends QueueOwner {
  readonly signal: AbortSignal;
}

/** `busy`: a place can take the task later. `none`: no place can take it. */
export type Choice<P> = P | "busy" | "none";

/** A task's right to run, at a place such as a node. */
export interface Lease<P> {
  readonly place: P;
  release(): void;
}

interface Waiter {
  canStart(): boolean;
  start(): void;
  refuse(): void;
}

/** A place does not report when it becomes available, so waiting tasks try again at this interval. */
const POLL_INTERVAL_MS = 100;

const OVERLOADED = "too many tasks are waiting";

const ignore = (): void => undefined;

/** Limits the tasks that run at a time. Clients take turns, and so do the connections or the queries of one client. */
export class FairGate<P extends object = object> {
  readonly #options: FairGateOptions;
  readonly #waiting = new FairQueue<Waiter>();
  readonly #atPlace = new Map<P, number>();
  #running = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FairGateOptions) {
    this.#options = options;
  }

  /** Number of tasks that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Tasks that hold a lease of this place. */
  inFlight(place: P): number {
    return this.#atPlace.get(place) ?? 0;
  }

  /** Runs a task when it is its client's turn. Rejects with RpcError (503) if too many tasks wait. */
  async run<T>(owner: QueueOwner, task: () => Promise<T>): Promise<T> {
    if (this.#running < this.#options.max) {
      this.#running++;
    } else {
      await this.#waitForTurn(owner);
    }
    try {
      return await task();
    } finally {
      this.#end();
    }
  }

  /**
   * Waits for a turn and a place; undefined if no place can take the task. Rejects when the owner's signal aborts, and with
   * RpcError (503) if too many tasks wait.
   */
  acquire(owner: SlotOwner, choose: () => Choice<P>): Promise<Lease<P> | undefined> {
    const { signal } = owner;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Lease<P> | undefined>();
    let choice: Choice<P> = "busy";
    const waiter: Waiter = {
      canStart: () => {
        choice = choose();
        return choice !== "busy";
      },
      start: () => resolve(typeof choice === "string" ? undefined : this.#lease(choice)),
      refuse: () => reject(this.#refusal()),
    };
    const onAbort = (): void => {
      this.#waiting.remove(owner, waiter);
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const stop = (): void => signal.removeEventListener("abort", onAbort);
    promise.then(stop, stop);
    this.#enqueue(owner, waiter);
    this.#dispatch();
    return promise;
  }

  #waitForTurn(owner: QueueOwner): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const start = (): void => {
      this.#running++;
      resolve();
    };
    this.#enqueue(owner, { canStart: () => true, start, refuse: () => reject(this.#refusal()) });
    return promise;
  }

  #refusal(): RpcError {
    return unavailable(this.#options.overloaded ?? OVERLOADED);
  }

  /** If too many tasks wait, it refuses this one, or the newest of the client with the most of them. */
  #enqueue(owner: QueueOwner, waiter: Waiter): void {
    const { maxWaiting = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#waiting.size >= maxWaiting) {
      const evicted = this.#waiting.evictFor(owner.clientId);
      if (evicted === undefined) {
        waiter.refuse();
        return;
      }
      evicted.refuse();
    }
    this.#waiting.add(owner, waiter);
  }

  /** Starts tasks in the order of turns. A timer repeats it if there is room, but each place is busy. */
  #dispatch(): void {
    let next: Waiter | undefined;
    do {
      next = this.#running < this.#options.max ? this.#waiting.take((waiter) => waiter.canStart()) : undefined;
      next?.start();
    } while (next !== undefined);
    clearTimeout(this.#timer);
    const isBusy = this.#waiting.size > 0 && this.#running < this.#options.max;
    this.#timer = isBusy ? setTimeout(() => this.#dispatch(), POLL_INTERVAL_MS) : undefined;
  }

  #lease(place: P): Lease<P> {
    this.#running++;
    this.#atPlace.set(place, this.inFlight(place) + 1);
    let release = (): void => {
      release = ignore;
      this.#atPlace.set(place, this.inFlight(place) - 1);
      this.#end();
    };
    return { place, release: () => release() };
  }

  #end(): void {
    this.#running--;
    this.#dispatch();
  }
}
