import type { Node } from "../core/node.ts";

/** Who asks, for fairness: callers take turns, and so do the queries of one caller. */
export interface SlotOwner {
  readonly clientId: string;
  readonly query: object;
  readonly signal: AbortSignal;
}

/** `busy`: a node would do, but not now. */
export type Choice = Node | "busy" | "none";

export interface Lease {
  readonly node: Node;
  release(): void;
}

export interface FairScheduler {
  /** Waits for its turn; undefined where no node would do. Rejects when the asker has left. */
  acquire(asker: SlotOwner, choose: () => Choice): Promise<Lease | undefined>;
  /** Spans that this node is answering. */
  inFlight(node: Node): number;
}

interface Waiter {
  readonly choose: () => Choice;
  readonly settle: (lease: Lease | undefined) => void;
}

/** A node that is not available becomes so without telling: those who wait look again this often. */
const POLL_INTERVAL_MS = 100;

/** Bounds the spans in flight of the whole process (all chains share one) and deals them out fairly. */
export const createFairScheduler = ({ maxSpans }: { readonly maxSpans: number }): FairScheduler => {
  /** Insertion order is the order of turns: who was served goes to the end. */
  const callers = new Map<string, Map<object, Waiter[]>>();
  const counts = new Map<Node, number>();
  let total = 0;
  let timer: NodeJS.Timeout | undefined;

  const lease = (node: Node): Lease => {
    total++;
    counts.set(node, (counts.get(node) ?? 0) + 1);
    let isReleased = false;
    return {
      node,
      release: () => {
        if (isReleased) return;
        isReleased = true;
        total--;
        counts.set(node, (counts.get(node) ?? 1) - 1);
        deal();
      },
    };
  };

  const remove = (clientId: string, query: object, waiter: Waiter): void => {
    const queries = callers.get(clientId);
    const waiters = queries?.get(query);
    if (queries === undefined || waiters === undefined) return;
    const at = waiters.indexOf(waiter);
    if (at >= 0) waiters.splice(at, 1);
    queries.delete(query);
    if (waiters.length > 0) queries.set(query, waiters);
    callers.delete(clientId);
    if (queries.size > 0) callers.set(clientId, queries);
  };

  /** Serves the first, in the order of turns, whom a node is free for. */
  const serveOne = (): boolean => {
    for (const [clientId, queries] of callers) {
      for (const [query, waiters] of queries) {
        for (const waiter of waiters) {
          const choice = waiter.choose();
          if (choice === "busy") continue;
          remove(clientId, query, waiter);
          waiter.settle(choice === "none" ? undefined : lease(choice));
          return true;
        }
      }
    }
    return false;
  };

  const deal = (): void => {
    while (total < maxSpans && serveOne());
    clearTimeout(timer);
    timer = callers.size > 0 ? setTimeout(deal, POLL_INTERVAL_MS) : undefined;
  };

  return {
    inFlight: (node) => counts.get(node) ?? 0,
    acquire: ({ clientId, query, signal }, choose) => {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<Lease | undefined>();
      const leave = () => {
        remove(clientId, query, waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        choose,
        settle: (granted) => {
          signal.removeEventListener("abort", leave);
          resolve(granted);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      const queries = callers.get(clientId) ?? new Map<object, Waiter[]>();
      const waiters = queries.get(query) ?? [];
      waiters.push(waiter);
      queries.set(query, waiters);
      callers.set(clientId, queries);
      deal();
      return promise;
    },
  };
};
