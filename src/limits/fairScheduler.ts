import type { Node } from "../core/node.ts";
import { FairQueue, type QueueOwner } from "./fairQueue.ts";

/** The owner of a request, for fairness: clients take turns, and so do the queries of one client. */
export interface SlotOwner extends QueueOwner {
  readonly signal: AbortSignal;
}

/** `busy`: a node can serve the request later. `none`: no node can serve it. */
export type Choice = Node | "busy" | "none";

export interface Lease {
  readonly node: Node;
  release(): void;
}

export interface FairScheduler {
  /** Waits for a slot and a node; undefined if no node can serve the request. Rejects when the owner's signal aborts. */
  acquire(owner: SlotOwner, choose: () => Choice): Promise<Lease | undefined>;
  /** Fetch ranges that this node is answering. */
  inFlight(node: Node): number;
}

interface Waiter {
  readonly choose: () => Choice;
  readonly grant: (lease: Lease | undefined) => void;
}

/** A node does not report when it becomes available, so that waiting requests try again at this interval. */
const POLL_INTERVAL_MS = 100;

class RoundRobinScheduler implements FairScheduler {
  readonly #maxSlots: number;
  readonly #waiting = new FairQueue<Waiter>();
  readonly #inFlight = new Map<Node, number>();
  #total = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(maxSlots: number) {
    this.#maxSlots = maxSlots;
  }

  inFlight(node: Node): number {
    return this.#inFlight.get(node) ?? 0;
  }

  acquire(owner: SlotOwner, choose: () => Choice): Promise<Lease | undefined> {
    const { signal } = owner;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Lease | undefined>();
    const onAbort = () => {
      this.#waiting.remove(owner, waiter);
      reject(signal.reason);
    };
    const waiter: Waiter = {
      choose,
      grant: (lease) => {
        signal.removeEventListener("abort", onAbort);
        resolve(lease);
      },
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.add(owner, waiter);
    this.#dispatch();
    return promise;
  }

  /** Grants slots while there are free ones, and starts the timer if requests still wait. */
  #dispatch(): void {
    let isServed = true;
    while (isServed && this.#total < this.#maxSlots) {
      isServed = this.#runNext();
    }
    clearTimeout(this.#timer);
    this.#timer = this.#waiting.size > 0 ? setTimeout(() => this.#dispatch(), POLL_INTERVAL_MS) : undefined;
  }

  /** Serves the first waiter, in the order of turns, that has a free node or none at all. */
  #runNext(): boolean {
    let node: Node | undefined;
    const waiter = this.#waiting.take(({ choose }) => {
      const choice = choose();
      node = typeof choice === "string" ? undefined : choice;
      return choice !== "busy";
    });
    waiter?.grant(node && this.#lease(node));
    return waiter !== undefined;
  }

  #lease(node: Node): Lease {
    this.#total++;
    this.#inFlight.set(node, this.inFlight(node) + 1);
    let isReleased = false;
    return {
      node,
      release: () => {
        if (isReleased) {
          return;
        }
        isReleased = true;
        this.#total--;
        this.#inFlight.set(node, this.inFlight(node) - 1);
        this.#dispatch();
      },
    };
  }
}

/** Limits the fetch ranges in flight of the whole process (all chains share one scheduler), and grants slots fairly. */
export const createFairScheduler = ({ maxRanges }: { readonly maxRanges: number }): FairScheduler =>
  new RoundRobinScheduler(maxRanges);
