import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";

/** The fields of a log that filters compare. Address and topics are in lower case. */
export interface MatchedLog {
  readonly address: string;
  readonly topics: readonly string[];
}

/**
 * Finds the subscribers of a log. A log is compared with filters that contain its address or one of its topics.
 * It is also compared with filters that contain no address and no topic.
 */
export interface FilterIndex<T> {
  readonly size: number;
  add(filter: LogFilter, entry: T): void;
  delete(filter: LogFilter, entry: T): void;
  /** Returns every entry whose filter matches the log, each once. */
  match(log: MatchedLog): Iterable<T>;
}

/** Entries with equal filters. Their filter is compared once for all of them. */
interface Group<T> {
  readonly matches: (log: MatchedLog) => boolean;
  readonly keys: readonly string[];
  readonly entries: Set<T>;
}

/** The key of filters without any address and topic. */
const ANY = "any";
const ADDRESS = "a";

/**
 * Returns the keys of a filter by dimension. A matching log has one key of each dimension.
 * Topics come first, because they are rarer than addresses.
 */
const dimensionsOf = ({ addresses, topics }: LogFilter): readonly (readonly string[])[] =>
  [
    ...topics.map((position, at) => position.map((topic) => at + topic)).reverse(),
    addresses.map((each) => ADDRESS + each),
  ].filter((keys) => keys.length > 0);

const keysOf = function* ({ address, topics }: MatchedLog): Generator<string> {
  yield ANY;
  yield ADDRESS + address;
  for (const [at, topic] of topics.entries()) {
    yield at + topic;
  }
};

/** Compiles a filter. It uses sets, because a filter may contain a thousand values in each position. */
const compileFilter = ({ addresses, topics }: LogFilter): ((log: MatchedLog) => boolean) => {
  const anyOf = new Set<string>(addresses);
  const positions = topics.map((position) => new Set<string>(position));
  return (log) =>
    (anyOf.size === 0 || anyOf.has(log.address)) &&
    log.topics.length >= positions.length &&
    positions.every((position, at) => position.size === 0 || position.has(log.topics[at] ?? ""));
};

class BucketLogIndex<T> implements FilterIndex<T> {
  readonly #groups = new Map<string, Group<T>>();
  readonly #buckets = new Map<string, Set<Group<T>>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(filter: LogFilter, entry: T): void {
    const text = canonicalLogFilter(filter);
    const group = this.#groups.get(text) ?? this.#createGroup(filter);
    this.#groups.set(text, group);
    this.#size += group.entries.has(entry) ? 0 : 1;
    group.entries.add(entry);
  }

  delete(filter: LogFilter, entry: T): void {
    const text = canonicalLogFilter(filter);
    const group = this.#groups.get(text);
    if (!group?.entries.delete(entry)) {
      return;
    }
    this.#size--;
    if (group.entries.size > 0) {
      return;
    }
    this.#groups.delete(text);
    this.#removeGroup(group);
  }

  *match(log: MatchedLog): Generator<T> {
    for (const key of keysOf(log)) {
      for (const group of this.#buckets.get(key) ?? []) {
        if (group.matches(log)) {
          yield* group.entries;
        }
      }
    }
  }

  /** Chooses the dimension with the smallest buckets. An address or topic that all filters share excludes no filter. */
  #chooseKeys(filter: LogFilter): readonly string[] {
    const [first, ...others] = dimensionsOf(filter);
    if (first === undefined) {
      return [ANY];
    }
    return others.reduce((best, keys) => (this.#longest(keys) < this.#longest(best) ? keys : best), first);
  }

  #longest(keys: readonly string[]): number {
    return keys.reduce((longest, key) => Math.max(longest, this.#buckets.get(key)?.size ?? 0), 0);
  }

  #createGroup(filter: LogFilter): Group<T> {
    const group = { matches: compileFilter(filter), keys: this.#chooseKeys(filter), entries: new Set<T>() };
    for (const key of group.keys) {
      const bucket = this.#buckets.get(key) ?? new Set();
      this.#buckets.set(key, bucket.add(group));
    }
    return group;
  }

  #removeGroup(group: Group<T>): void {
    for (const key of group.keys) {
      const bucket = this.#buckets.get(key);
      bucket?.delete(group);
      if (bucket?.size === 0) {
        this.#buckets.delete(key);
      }
    }
  }
}

/** Creates an index of log filters. */
export const createFilterIndex = <T>(): FilterIndex<T> => new BucketLogIndex<T>();
