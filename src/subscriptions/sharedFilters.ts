import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { BlockId } from "../core/heads.ts";
import type { RunScript, ScriptArgument } from "../core/sharedValues.ts";
import { type Hash, isQuantity } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import {
  FILTER_EXPIRY_MS,
  type FilterAdvance,
  type FilterCursor,
  type FilterStore,
  formatQuery,
  MAX_FILTER_BLOCKS,
  MAX_FILTER_BYTES,
  type NewFilter,
  type ReportedBlock,
  weightOfQuery,
} from "./filterStore.ts";

/*
 * One filter is one Redis hash, so that a script uses one slot of a cluster. Its fields:
 * `query`; `caller`, the client's id; `version`, which changes with each advance.
 * `blocks` are the reported blocks as entries of equal length, oldest first.
 * `l:<entry>` are the logs of a block, empty if there was no room. `bytes` is the total length of these logs.
 */

/** An entry is a block number of 16 hex digits and a hash of 64. */
const ENTRY_LENGTH = 80;
const NUMBER_LENGTH = 16;

/** Creates a filter. ARGV: query, client id, version, entries. */
export const CREATE_FILTER = `
redis.call('HSET', KEYS[1], 'query', ARGV[1], 'caller', ARGV[2], 'version', ARGV[3], 'blocks', ARGV[4], 'bytes', 0)
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

const NOW_MS = `(function() local time = redis.call('TIME') return time[1] * 1000 + math.floor(time[2] / 1000) end)()`;

/**
 * Returns query, client id, version, the last entry, and the time of the server in milliseconds; false for an unknown filter.
 * ARGV: the time until the filter expires. 0 removes it.
 */
export const READ_FILTER = `
local filter = redis.call('HMGET', KEYS[1], 'query', 'caller', 'version', 'blocks')
if not filter[3] then return false end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
filter[4] = string.sub(filter[4], -${ENTRY_LENGTH})
filter[5] = ${NOW_MS}
return filter
`;

/** Returns all fields and their values, one after the other. */
const READ_FIELDS = `return redis.call('HGETALL', KEYS[1])`;

/**
 * Stores the step of one poll. ARGV: the version at its start, the next version, the number of entries that stay.
 * More ARGV: the added entries, the lowest number that is still needed, the deadline, then pairs of entry and logs.
 * Returns 1 if the filter has the next version now, also if it had it before. Otherwise 0, also after the deadline.
 */
export const ADVANCE_FILTER = `
local entry, key = ${ENTRY_LENGTH}, KEYS[1]
local version, blocks, bytes = unpack(redis.call('HMGET', key, 'version', 'blocks', 'bytes'))
if version == ARGV[2] then return 1 end
if version ~= ARGV[1] or ${NOW_MS} > tonumber(ARGV[6]) then return 0 end
local function forget(entries)
  for at = 1, #entries, entry do
    local field = 'l:' .. string.sub(entries, at, at + entry - 1)
    bytes = bytes - redis.call('HSTRLEN', key, field)
    redis.call('HDEL', key, field)
  end
end
local stays = tonumber(ARGV[3]) * entry
forget(string.sub(blocks, stays + 1))
blocks = string.sub(blocks, 1, stays) .. ARGV[4]
local first = 1
local function isNeeded()
  local length = #blocks - first + 1
  if length <= entry then return true end
  return length <= ${MAX_FILTER_BLOCKS} * entry and string.sub(blocks, first, first + ${NUMBER_LENGTH} - 1) >= ARGV[5]
end
while not isNeeded() do first = first + entry end
forget(string.sub(blocks, 1, first - 1))
for at = 7, #ARGV, 2 do
  local logs = ARGV[at + 1]
  if bytes + #logs > ${MAX_FILTER_BYTES} then logs = '' end
  bytes = bytes + #logs
  redis.call('HSET', key, 'l:' .. ARGV[at], logs)
end
redis.call('HSET', key, 'version', ARGV[2], 'blocks', string.sub(blocks, first), 'bytes', bytes)
redis.call('PEXPIRE', key, ${FILTER_EXPIRY_MS})
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
const FORMAT = 1;
/** The format of the sets of filters by client. Format 1 had no weights. */
const COUNT_FORMAT = 2;

const keyOf = (id: string): string => `filter${FORMAT}:${id}`;
const countKeyOf = (clientId: string): string => `filtersOf${COUNT_FORMAT}:${clientId}`;
/** An entry of a client's set. It has the weight of the filter, so that a script can add them up. */
const countEntry = (id: string, query: string): string => `${weightOfQuery(query)}:${id}`;
const createVersion = (): string => randomBytes(9).toString("base64url");

const formatNumber = (number: bigint): string => number.toString(16).padStart(NUMBER_LENGTH, "0");
const formatEntry = ({ number, hash }: BlockId): string => formatNumber(number) + hash.slice(2);

const parseEntry = (entry: string): BlockId => {
  const hash: Hash = `0x${entry.slice(NUMBER_LENGTH)}`;
  return { number: BigInt(`0x${entry.slice(0, NUMBER_LENGTH)}`), hash };
};

const parseEntries = (text: string): BlockId[] =>
  Array.from({ length: text.length / ENTRY_LENGTH }, (_, index) =>
    parseEntry(text.slice(index * ENTRY_LENGTH, (index + 1) * ENTRY_LENGTH)),
  );

const parseQuery = (text: string): LogQuery | undefined =>
  text === ""
    ? undefined
    : JSON.parse(text, (key, value: unknown) =>
        (key === "fromBlock" || key === "toBlock") && isQuantity(value) ? BigInt(value) : value,
      );

const listOf = (reply: unknown): readonly unknown[] => (Array.isArray(reply) ? reply : []);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** A filter as READ_FILTER returns it. */
interface SharedFilter {
  readonly query: string;
  readonly clientId: string;
  readonly version: string;
  readonly last: string;
  /** The time of the server. */
  readonly redisMs: number;
}

const parseFilter = (reply: unknown): SharedFilter | undefined => {
  const [query, clientId, version, last, redisMs] = listOf(reply);
  return typeof version === "string"
    ? { query: textOf(query), clientId: textOf(clientId), version, last: textOf(last), redisMs: Number(redisMs) }
    : undefined;
};

/** Redis executes an advance within this time, or never. */
const ADVANCE_MS = 500;
/** Redis compares whole milliseconds, and a timer may fire one early. */
const MARGIN_MS = 5;

const advanceArguments = (
  { from, stayed, added, finalized }: FilterAdvance,
  next: string,
  deadlineMs: number,
): ScriptArgument[] => [
  from,
  next,
  stayed ?? MAX_FILTER_BLOCKS,
  added.map(formatEntry).join(""),
  formatNumber(finalized < 0n ? 0n : finalized + 1n),
  deadlineMs,
  ...added.flatMap((block) => (block.logs === undefined ? [] : [formatEntry(block), Buffer.from(block.logs)])),
];

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

  async add(id: string, { clientId, query, blocks }: NewFilter): Promise<boolean> {
    const { run, maxPerClient, maxBytesPerClient } = this.#options;
    const nowMs = Date.now();
    const text = formatQuery(query);
    const limits = [maxPerClient, maxBytesPerClient - weightOfQuery(text)];
    const countArguments = [nowMs, nowMs + FILTER_EXPIRY_MS, countEntry(id, text), ...limits];
    if ((await run(COUNT_FILTER, countKeyOf(clientId), countArguments)) !== 1) {
      return false;
    }
    const entries = blocks.map(formatEntry).join("");
    await run(CREATE_FILTER, keyOf(id), [text, clientId, createVersion(), entries]);
    return true;
  }

  async read(id: string): Promise<FilterCursor | undefined> {
    const filter = await this.#read(id);
    if (filter === undefined) {
      return undefined;
    }
    this.#setExpiry(id, filter, Date.now() + FILTER_EXPIRY_MS);
    return { query: parseQuery(filter.query), version: filter.version, last: parseEntries(filter.last)[0] };
  }

  async reported(id: string, version: string): Promise<readonly ReportedBlock[] | undefined> {
    const reply = listOf(await this.#options.run(READ_FIELDS, keyOf(id), []));
    const fields = new Map(
      Array.from({ length: reply.length / 2 }, (_, index) => [reply[2 * index], textOf(reply[2 * index + 1])]),
    );
    if (fields.get("version") !== version) {
      return undefined;
    }
    return parseEntries(textOf(fields.get("blocks"))).map((block) => {
      const logs = fields.get(`l:${formatEntry(block)}`);
      return { ...block, logs: logs === undefined ? undefined : Buffer.from(logs) };
    });
  }

  async advance(id: string, advance: FilterAdvance): Promise<boolean> {
    const filter = await this.#read(id);
    if (filter === undefined) {
      return false;
    }
    const next = createVersion();
    const startMs = performance.now();
    try {
      const args = advanceArguments(advance, next, filter.redisMs + ADVANCE_MS);
      return (await this.#options.run(ADVANCE_FILTER, keyOf(id), args)) === 1;
    } catch (error) {
      // The reply may be lost. After the deadline, the version shows whether Redis has executed the advance.
      await sleep(Math.max(0, startMs + ADVANCE_MS + MARGIN_MS - performance.now()));
      if ((await this.#read(id))?.version === next) {
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
  #setExpiry(id: string, { clientId, query }: SharedFilter, atMs: number): void {
    const args = [Date.now(), atMs, countEntry(id, query)];
    this.#options.run(COUNT_FILTER, countKeyOf(clientId), args).catch(() => undefined);
  }
}
