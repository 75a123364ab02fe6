import { unavailable } from "../jsonrpc/rpcError.ts";
import { FairQueue, type QueueOwner } from "./fairQueue.ts";

export interface FairSlotsOptions {
  /** Tasks at a time. */
  readonly max: number;
  /** Tasks that wait. Default: no limit. */
  readonly maxWaiting?: number;
  /** The text of the error (503) of a task that cannot wait. */
  readonly overloaded: string;
}

interface Waiter {
  start(): void;
  refuse(): void;
}

/** Limits the tasks that run at a time. Clients take turns. */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  readonly #waiting = new FairQueue<Waiter>();
  #running = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /** Number of tasks that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs a task when it is its client's turn. Rejects with RpcError (503) if too many tasks wait. */
  async run<T>(owner: QueueOwner, task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#options.max) {
      await this.#wait(owner);
    } else {
      this.#running++;
    }
    try {
      return await task();
    } finally {
      this.#end();
    }
  }

  /** Resolves with the slot of a task that ended. */
  #wait(owner: QueueOwner): Promise<void> {
    const { maxWaiting = Number.POSITIVE_INFINITY, overloaded } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (this.#waiting.size >= maxWaiting) {
      const evicted = this.#waiting.evictFor(owner.clientId);
      if (evicted === undefined) {
        return Promise.reject(unavailable(overloaded));
      }
      evicted.refuse();
    }
    this.#waiting.add(owner, { start: resolve, refuse: () => reject(unavailable(overloaded)) });
    return promise;
  }

  #end(): void {
    const next = this.#waiting.take();
    if (next === undefined) {
      this.#running--;
    } else {
      next.start();
    }
  }
}
