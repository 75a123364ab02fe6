import type { Body } from "../core/view.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { formatJson, parseJson } from "../json/jsonBytes.ts";

/** The fields of a log that filters compare. Address and topics are in lower case. */
export interface MatchedLog {
  readonly address: string;
  readonly topics: readonly string[];
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

/**
 * Finds the subscribers of a log. A log is compared with filters that contain its address or one of its topics.
 * It is also compared with filters that contain no address and no topic.
 */
export class FilterIndex<T> {
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

  /** Returns every entry whose filter matches the log, each once. */
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

/** A log that is delivered to subscriptions. */
export interface SubscribedLog extends MatchedLog {
  /** The number of its block. */
  readonly number: bigint;
  /** Identifies the log among all logs of blocks with that number (see logKey). */
  readonly key: string;
  readonly transactionHash: string;
  readonly data: string;
  body(removed: boolean): Body;
}

type RpcLog = Readonly<Record<string, unknown>> & { readonly topics: readonly unknown[] };

const isLog = (value: unknown): value is RpcLog =>
  typeof value === "object" && value !== null && "topics" in value && Array.isArray(value.topics);

const lowerCase = (value: unknown): string => String(value).toLowerCase();

/** Creates the key of a log from its transaction and its index in the block. */
export const logKey = (transactionHash: unknown, logIndex: unknown): string =>
  `${lowerCase(transactionHash)}:${Number(logIndex)}`;

/** Parses the fields of a receipt's logs that filters compare. */
export const matchedLogs = (logs: unknown): readonly MatchedLog[] =>
  Array.isArray(logs) ? logs.filter(isLog).map(matchedLog) : [];

const matchedLog = (log: RpcLog): MatchedLog => ({
  address: lowerCase(log.address),
  topics: log.topics.map(lowerCase),
});

const parseLog = (value: unknown): SubscribedLog[] => {
  if (!isLog(value)) {
    return [];
  }
  return [
    {
      ...matchedLog(value),
      number: BigInt(String(value.blockNumber)),
      key: logKey(value.transactionHash, value.logIndex),
      transactionHash: lowerCase(value.transactionHash),
      data: String(value.data),
      body: (removed) => formatJson({ ...value, removed }),
    },
  ];
};

/** Parses the JSON text of an eth_getLogs result. */
export const parseLogs = (text: Uint8Array): readonly SubscribedLog[] => {
  const values = parseJson(text);
  return Array.isArray(values) ? values.flatMap(parseLog) : [];
};
