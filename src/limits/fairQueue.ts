/** The owner of a waiting item. Clients take turns, and so do the groups of one client: its connections, or its log queries. */
export interface QueueOwner {
  readonly clientId: string;
  readonly group: object;
}

/** The group of callers that have no connection. */
const NO_CONNECTION = {};

/** The owner of a request: the client, then its connection. */
export const ownerOf = ({
  clientId,
  connection = NO_CONNECTION,
}: {
  readonly clientId: string;
  readonly connection?: object | undefined;
}): QueueOwner => ({ clientId, group: connection });

/** The owner of work that no client requested. */
export const INTERNAL_OWNER: QueueOwner = { clientId: "", group: NO_CONNECTION };

/** The items of one client by group. A served group moves to the end. */
type Groups<T> = Map<object, Set<T>>;

/** Limit of the clients that an idle queue remembers as served. */
const MAX_SERVED = 1_000;

/** Items that wait for a place. In each round every waiting client is served once, and of its groups the one whose turn it is. */
export class FairQueue<T extends object> {
  /** The clients that were not served in this round. Insertion order is the order of turns. */
  #thisRound = new Map<string, Groups<T>>();
  #nextRound = new Map<string, Groups<T>>();
  /** The clients that were served in this round, also if nothing of them waits. */
  readonly #served = new Set<string>();
  readonly #counts = new Map<string, number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Number of clients that wait. */
  get clients(): number {
    return this.#counts.size;
  }

  /** Number of items of this client. */
  countOf(clientId: string): number {
    return this.#counts.get(clientId) ?? 0;
  }

  /** An item may be in the queue once. */
  add({ clientId, group }: QueueOwner, item: T): void {
    let groups = this.#groupsOf(clientId);
    if (groups === undefined) {
      groups = new Map();
      (this.#served.has(clientId) ? this.#nextRound : this.#thisRound).set(clientId, groups);
    }
    let items = groups.get(group);
    if (items === undefined) {
      items = new Set();
      groups.set(group, items);
    }
    items.add(item);
    this.#count(clientId, 1);
  }

  /** Removes an item that waits no longer. The order of turns stays. Returns false if the item does not wait. */
  remove({ clientId, group }: QueueOwner, item: T): boolean {
    const groups = this.#groupsOf(clientId);
    const items = groups?.get(group);
    if (groups === undefined || items === undefined || !items.delete(item)) {
      return false;
    }
    if (items.size === 0) {
      groups.delete(group);
    }
    if (groups.size === 0) {
      this.#thisRound.delete(clientId);
      this.#nextRound.delete(clientId);
    }
    this.#count(clientId, -1);
    return true;
  }

  /** Takes the first item, in the order of turns, that `accepts` allows. Default: all are allowed. */
  take(accepts: (item: T) => boolean = () => true): T | undefined {
    for (const [owner, item] of this.#inOrder()) {
      if (accepts(item)) {
        this.remove(owner, item);
        this.#endTurn(owner);
        return item;
      }
    }
    return undefined;
  }

  /** Returns the item of the next turn. */
  peek(): T | undefined {
    for (const [, item] of this.#inOrder()) {
      return item;
    }
    return undefined;
  }

  /**
   * Makes room for an item of this client: removes and returns the newest item of the client with the most items that `accepts`
   * allows. Default: all are allowed. Returns undefined if no other client has at least two items more.
   */
  evictFor(clientId: string, accepts: (item: T) => boolean = () => true): T | undefined {
    const [longest, count] = maxOf(this.#counts) ?? [];
    if (longest === undefined || count === undefined || count <= this.countOf(clientId) + 1) {
      return undefined;
    }
    const [group, items] = [...(this.#groupsOf(longest) ?? [])].sort(([, a], [, b]) => b.size - a.size)[0] ?? [];
    const newest = [...(items ?? [])].findLast(accepts);
    if (group !== undefined && newest !== undefined) {
      this.remove({ clientId: longest, group }, newest);
    }
    return newest;
  }

  #groupsOf(clientId: string): Groups<T> | undefined {
    return this.#thisRound.get(clientId) ?? this.#nextRound.get(clientId);
  }

  *#inOrder(): Generator<readonly [QueueOwner, T]> {
    if (this.#thisRound.size === 0) {
      this.#startRound();
    }
    for (const clients of [this.#thisRound, this.#nextRound]) {
      for (const [clientId, groups] of clients) {
        for (const [group, items] of groups) {
          for (const item of items) {
            yield [{ clientId, group }, item];
          }
        }
      }
    }
  }

  #startRound(): void {
    if (this.#nextRound.size > 0 || this.#served.size > MAX_SERVED) {
      [this.#thisRound, this.#nextRound] = [this.#nextRound, this.#thisRound];
      this.#served.clear();
    }
  }

  /** Moves a client to the next round, and its group to the end, if they still wait. */
  #endTurn({ clientId, group }: QueueOwner): void {
    this.#served.add(clientId);
    const groups = this.#groupsOf(clientId);
    if (groups === undefined) {
      return;
    }
    this.#thisRound.delete(clientId);
    this.#nextRound.delete(clientId);
    this.#nextRound.set(clientId, groups);
    const items = groups.get(group);
    if (items !== undefined) {
      groups.delete(group);
      groups.set(group, items);
    }
  }

  #count(clientId: string, by: 1 | -1): void {
    const count = this.countOf(clientId) + by;
    this.#size += by;
    if (count === 0) {
      this.#counts.delete(clientId);
    } else {
      this.#counts.set(clientId, count);
    }
  }
}

const maxOf = (counts: ReadonlyMap<string, number>): readonly [string, number] | undefined => {
  let max: readonly [string, number] | undefined;
  for (const entry of counts) {
    if (max === undefined || entry[1] > max[1]) {
      max = entry;
    }
  }
  return max;
};
