import { canonicalLogFilter, type LogFilter } from "./logFilter.ts";

/** What of a log filters look at; address and topics in lower case. */
export interface MatchedLog {
  readonly address: string;
  readonly topics: readonly string[];
}

/** Who wants which logs. A log is tried only on filters that name its address or one of its topics, and on those that name none. */
export interface LogIndex<T> {
  readonly size: number;
  add(filter: LogFilter, entry: T): void;
  delete(filter: LogFilter, entry: T): void;
  /** Every entry whose filter matches the log, each once. */
  match(log: MatchedLog): Iterable<T>;
}

/** Entries with equal filters: matched once for all of them. */
interface Group<T> {
  readonly matches: (log: MatchedLog) => boolean;
  readonly keys: readonly string[];
  readonly entries: Set<T>;
}

type Buckets<T> = Map<string, Set<Group<T>>>;

/** Under this key are filters that name nothing. */
const ANY = "any";
const ADDRESS = "a";

/** What a filter names, by dimension: any one of a dimension's keys is in every log that matches. Topics first: they are the rarer ones. */
const dimensionsOf = ({ addresses, topics }: LogFilter): readonly (readonly string[])[] =>
  [
    ...topics.map((position, at) => position.map((topic) => at + topic)).reverse(),
    addresses.map((each) => ADDRESS + each),
  ].filter((keys) => keys.length > 0);

const keysOf = function* ({ address, topics }: MatchedLog): Generator<string> {
  yield ANY;
  yield ADDRESS + address;
  for (const [at, topic] of topics.entries()) yield at + topic;
};

/** Filters may hold a thousand values each: they are looked up, not searched. */
const matcherOf = ({ addresses, topics }: LogFilter): ((log: MatchedLog) => boolean) => {
  const anyOf = new Set<string>(addresses);
  const positions = topics.map((position) => new Set<string>(position));
  return (log) =>
    (anyOf.size === 0 || anyOf.has(log.address)) &&
    log.topics.length >= positions.length &&
    positions.every((position, at) => position.size === 0 || position.has(log.topics[at] ?? ""));
};

export const createLogIndex = <T>(): LogIndex<T> => {
  const groups = new Map<string, Group<T>>();
  const buckets: Buckets<T> = new Map();
  let size = 0;

  const longest = (keys: readonly string[]): number =>
    keys.reduce((most, key) => Math.max(most, buckets.get(key)?.size ?? 0), 0);

  /** The dimension whose buckets are emptiest now: an address or topic that all filters share tells nothing. */
  const chooseKeys = (filter: LogFilter): readonly string[] => {
    const [first, ...others] = dimensionsOf(filter);
    if (first === undefined) return [ANY];
    return others.reduce((best, keys) => (longest(keys) < longest(best) ? keys : best), first);
  };

  const createGroup = (filter: LogFilter): Group<T> => {
    const group = { matches: matcherOf(filter), keys: chooseKeys(filter), entries: new Set<T>() };
    for (const key of group.keys) {
      const bucket = buckets.get(key) ?? new Set();
      buckets.set(key, bucket.add(group));
    }
    return group;
  };

  const removeGroup = (group: Group<T>): void => {
    for (const key of group.keys) {
      const bucket = buckets.get(key);
      bucket?.delete(group);
      if (bucket?.size === 0) buckets.delete(key);
    }
  };

  return {
    get size() {
      return size;
    },
    add: (filter, entry) => {
      const text = canonicalLogFilter(filter);
      const group = groups.get(text) ?? createGroup(filter);
      groups.set(text, group);
      size += group.entries.has(entry) ? 0 : 1;
      group.entries.add(entry);
    },
    delete: (filter, entry) => {
      const text = canonicalLogFilter(filter);
      const group = groups.get(text);
      if (!group?.entries.delete(entry)) return;
      size--;
      if (group.entries.size > 0) return;
      groups.delete(text);
      removeGroup(group);
    },
    match: function* (log) {
      for (const key of keysOf(log)) {
        for (const group of buckets.get(key) ?? []) if (group.matches(log)) yield* group.entries;
      }
    },
  };
};
