import { setTimeout as sleep } from "node:timers/promises";
import type { RunScript } from "../core/sharedValues.ts";
import { type Hash, isQuantity } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import { FILTER_EXPIRY_MS, type Filter, type FilterStore, formatQuery, NONCE_LENGTH } from "./filterStore.ts";

/** A filter is one value: its nonce, then the others as JSON. */
interface FilterFields {
  readonly clientId: string;
  /** JSON text; empty for a filter of blocks. */
  readonly query: string;
  readonly number: string;
  readonly hash: Hash;
  readonly since: string;
}

/** Creates a filter. ARGV: its value. */
export const CREATE_FILTER = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ${FILTER_EXPIRY_MS})
return 1
`;

const NOW_MS = `(function() local time = redis.call('TIME') return time[1] * 1000 + math.floor(time[2] / 1000) end)()`;

/**
 * Returns the value and the time of the server in milliseconds; false for an unknown filter.
 * ARGV: the time until the filter expires. 0 removes it.
 */
const READ_FILTER = `
local value = redis.call('GET', KEYS[1])
if not value then return false end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {value, ${NOW_MS}}
`;

/**
 * Replaces a filter. ARGV: its nonce, the next value, the deadline.
 * Returns 1 if the filter has the next value now, also if it had it before. Otherwise 0, also after the deadline.
 */
export const REPLACE_FILTER = `
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
if value == ARGV[2] then return 1 end
if string.sub(value, 1, ${NONCE_LENGTH}) ~= ARGV[1] or ${NOW_MS} > tonumber(ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ${FILTER_EXPIRY_MS})
return 1
`;

/**
 * Adds a filter to the set of one client's filters, ordered by expiry, or changes its expiry. An entry is `<bytes>:<id>`.
 * ARGV: now, expiry, entry. For a new filter also the limit of filters, and that of the bytes of the client's other filters.
 * Returns 0 if the client has reached a limit.
 */
const COUNT_FILTER = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if ARGV[4] then
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
  local bytes = 0
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    bytes = bytes + tonumber(string.match(entry, '^%d+'))
  end
  if bytes > tonumber(ARGV[5]) then return 0 end
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** Raise it if the stored format of a filter changes: replicas of two versions can run at the same time. */
const FORMAT = 2;
/** The format of the sets of filters by client. Format 1 had no weights. */
const COUNT_FORMAT = 2;

const keyOf = (id: string): string => `filter${FORMAT}:${id}`;
const countKeyOf = (clientId: string): string => `filtersOf${COUNT_FORMAT}:${clientId}`;
/** An entry of a client's set. It has the weight of the filter, so that a script can add them up. */
const countEntry = (id: string, { length }: string): string => `${length}:${id}`;

const formatFilter = ({ clientId, query, cursor: { number, hash }, since, nonce }: Filter): string => {
  const fields: FilterFields = {
    ...{ clientId, query: formatQuery(query), number: String(number), hash, since: String(since) },
  };
  return nonce + JSON.stringify(fields);
};

const parseQuery = (text: string): LogQuery | undefined =>
  text === ""
    ? undefined
    : JSON.parse(text, (key, value: unknown) =>
        (key === "fromBlock" || key === "toBlock") && isQuantity(value) ? BigInt(value) : value,
      );

/** A filter as READ_FILTER returns it. */
interface SharedFilter {
  readonly filter: Filter;
  /** The text of its query. */
  readonly query: string;
  /** The time of the server. */
  readonly redisMs: number;
}

const parseFilter = (reply: unknown): SharedFilter | undefined => {
  const [value, redisMs] = Array.isArray(reply) ? reply : [];
  if (typeof value !== "string") {
    return undefined;
  }
  const { clientId, query, number, hash, since }: FilterFields = JSON.parse(value.slice(NONCE_LENGTH));
  const cursor = { number: BigInt(number), hash };
  const nonce = value.slice(0, NONCE_LENGTH);
  return {
    ...{ query, redisMs: Number(redisMs) },
    filter: { clientId, query: parseQuery(query), cursor, since: BigInt(since), nonce },
  };
};

/** Redis replaces a filter within this time, or never: a poll that failed must not count later. */
const REPLACE_MS = 500;
/** Redis compares whole milliseconds, and a timer may fire one early. */
const MARGIN_MS = 5;

export interface SharedFiltersOptions {
  readonly maxPerClient: number;
  readonly maxBytesPerClient: number;
  /** Runs a script on one key of Redis. Rejects if Redis does not answer in time. */
  readonly run: RunScript;
}

/** Stores filters in Redis. Every replica answers their polls, and exactly one poll returns each event. */
export class SharedFilters implements FilterStore {
  readonly #options: SharedFiltersOptions;

  constructor(options: SharedFiltersOptions) {
    this.#options = options;
  }

  async add(id: string, filter: Filter): Promise<boolean> {
    const { run, maxPerClient, maxBytesPerClient } = this.#options;
    const nowMs = Date.now();
    const text = formatQuery(filter.query);
    const limits = [maxPerClient, maxBytesPerClient - text.length];
    const countArguments = [nowMs, nowMs + FILTER_EXPIRY_MS, countEntry(id, text), ...limits];
    if ((await run(COUNT_FILTER, countKeyOf(filter.clientId), countArguments)) !== 1) {
      return false;
    }
    await run(CREATE_FILTER, keyOf(id), [formatFilter(filter)]);
    return true;
  }

  async read(id: string): Promise<Filter | undefined> {
    const found = await this.#read(id);
    if (found !== undefined) {
      this.#setExpiry(id, found, Date.now() + FILTER_EXPIRY_MS);
    }
    return found?.filter;
  }

  async replace(id: string, from: Filter, to: Filter): Promise<boolean> {
    const found = await this.#read(id);
    if (found?.filter.nonce !== from.nonce) {
      return false;
    }
    const startMs = performance.now();
    try {
      const args = [from.nonce, formatFilter(to), found.redisMs + REPLACE_MS];
      return (await this.#options.run(REPLACE_FILTER, keyOf(id), args)) === 1;
    } catch (error) {
      // The reply may be lost. After the deadline, the nonce shows whether Redis has replaced the filter.
      await sleep(Math.max(0, startMs + REPLACE_MS + MARGIN_MS - performance.now()));
      if ((await this.#read(id))?.filter.nonce === to.nonce) {
        return true;
      }
      throw error;
    }
  }

  async remove(id: string): Promise<boolean> {
    const filter = await this.#read(id, 0);
    if (filter === undefined) {
      return false;
    }
    this.#setExpiry(id, filter, 0);
    return true;
  }

  async #read(id: string, expiryMs = FILTER_EXPIRY_MS): Promise<SharedFilter | undefined> {
    return parseFilter(await this.#options.run(READ_FILTER, keyOf(id), [expiryMs]));
  }

  /** Changes how long a filter counts towards its client's limits. It does no harm if it counts for too long, or too briefly. */
  #setExpiry(id: string, { filter: { clientId }, query }: SharedFilter, atMs: number): void {
    const args = [Date.now(), atMs, countEntry(id, query)];
    this.#options.run(COUNT_FILTER, countKeyOf(clientId), args).catch(() => undefined);
  }
}
