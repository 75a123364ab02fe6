import { FILTER_EXPIRY_MS, MAX_FILTER_BLOCKS, MAX_FILTER_BYTES } from "./filterStore.ts";

/*
 * One filter is one Redis hash, so that a script uses one slot of a cluster. Its fields:
 * `query`; `caller`, the client's id; `version`, which changes with each advance.
 * `blocks` are the reported blocks as entries of equal length, oldest first.
 * `l:<entry>` are the logs of a block, empty if there was no room. `bytes` is the total length of these logs.
 */

/** An entry is a block number of 16 hex digits and a hash of 64. */
export const ENTRY_LENGTH = 80;

/** Creates a filter. ARGV: query, client id, version, entries. */
export const CREATE_FILTER = `
redis.call('HSET', KEYS[1], 'query', ARGV[1], 'caller', ARGV[2], 'version', ARGV[3], 'blocks', ARGV[4], 'bytes', 0)
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** Returns query, client id, version and the last entry; false for an unknown filter. */
export const READ_FILTER = `
local filter = redis.call('HMGET', KEYS[1], 'query', 'caller', 'version', 'blocks')
if not filter[3] then return false end
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
filter[4] = string.sub(filter[4], -${ENTRY_LENGTH})
return filter
`;

/** Returns version and entries. */
export const READ_BLOCKS = `return redis.call('HMGET', KEYS[1], 'version', 'blocks')`;

/** Returns the values of fields. ARGV: fields. */
export const READ_LOGS = `return redis.call('HMGET', KEYS[1], unpack(ARGV))`;

const NOW_MS = `(function() local time = redis.call('TIME') return time[1] * 1000 + math.floor(time[2] / 1000) end)()`;

/** Returns the time of the server in milliseconds. */
export const READ_TIME = `return ${NOW_MS}`;

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
  return length <= ${MAX_FILTER_BLOCKS} * entry and string.sub(blocks, first, first + 15) >= ARGV[5]
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

/** Returns client id and query of the removed filter; false for an unknown one. */
export const REMOVE_FILTER = `
local filter = redis.call('HMGET', KEYS[1], 'caller', 'query')
redis.call('DEL', KEYS[1])
return filter
`;

/**
 * Adds a filter to the set of one client's filters, ordered by expiry. An entry is `<bytes>:<id>`.
 * ARGV: now, expiry, entry, limit of filters, limit of the bytes of the other filters.
 * Returns 0 if the client has reached a limit.
 */
export const COUNT_FILTER = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
local bytes = 0
for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  bytes = bytes + tonumber(string.match(entry, '^%d+'))
end
if bytes > tonumber(ARGV[5]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** Extends the expiry of a polled filter in its client's set. ARGV: expiry, entry. */
export const RECOUNT_FILTER = `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** Removes a filter from its client's set. ARGV: entry. */
export const DISCOUNT_FILTER = `return redis.call('ZREM', KEYS[1], ARGV[1])`;
