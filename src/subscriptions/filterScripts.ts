import { FILTER_EXPIRY_MS, MAX_FILTER_BLOCKS, MAX_FILTER_BYTES } from "./filterStore.ts";

/*
 * One filter is one hash, so that a script touches one slot of a cluster. Its fields: `query` and `caller`; `version`, another
 * one after each advance; `blocks`, the reported blocks as entries of equal length, oldest first; `l:<entry>`, the logs of a
 * block (empty: no room); `bytes`, the length of these logs together.
 */

/** A block number of 16 hex digits, and a hash of 64. */
export const ENTRY_LENGTH = 80;

/** ARGV: query, caller, version, entries. */
export const CREATE_FILTER = `
redis.call('HSET', KEYS[1], 'query', ARGV[1], 'caller', ARGV[2], 'version', ARGV[3], 'blocks', ARGV[4], 'bytes', 0)
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** Gives query, caller, version and the last entry; nothing for an unknown filter. */
export const READ_FILTER = `
local filter = redis.call('HMGET', KEYS[1], 'query', 'caller', 'version', 'blocks')
if not filter[3] then return false end
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
filter[4] = string.sub(filter[4], -${ENTRY_LENGTH})
return filter
`;

/** Gives version and entries. */
export const READ_BLOCKS = `return redis.call('HMGET', KEYS[1], 'version', 'blocks')`;

/** ARGV: fields. Gives their values. */
export const READ_LOGS = `return redis.call('HMGET', KEYS[1], unpack(ARGV))`;

/**
 * ARGV: the version that the poll started from, the next one, entries that stay, entries that are added, the lowest number
 * that is still needed, then entry and logs in turn. Gives 1 where the filter has the next version, also where it had it before.
 */
export const ADVANCE_FILTER = `
local entry, key = ${ENTRY_LENGTH}, KEYS[1]
local version, blocks, bytes = unpack(redis.call('HMGET', key, 'version', 'blocks', 'bytes'))
if version == ARGV[2] then return 1 end
if version ~= ARGV[1] then return 0 end
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
for at = 6, #ARGV, 2 do
  local logs = ARGV[at + 1]
  if bytes + #logs > ${MAX_FILTER_BYTES} then logs = '' end
  bytes = bytes + #logs
  redis.call('HSET', key, 'l:' .. ARGV[at], logs)
end
redis.call('HSET', key, 'version', ARGV[2], 'blocks', string.sub(blocks, first), 'bytes', bytes)
redis.call('PEXPIRE', key, ${FILTER_EXPIRY_MS})
return 1
`;

/** Gives the client of the removed filter; nothing for an unknown one. */
export const REMOVE_FILTER = `
local caller = redis.call('HGET', KEYS[1], 'caller')
redis.call('DEL', KEYS[1])
return caller
`;

/** The filters of one client by the time of their expiry. ARGV: now, expiry, id, most filters. Gives 0 where these are reached. */
export const COUNT_FILTER = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** A polled filter goes on to count. ARGV: expiry, id. */
export const RECOUNT_FILTER = `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ${FILTER_EXPIRY_MS})
return 1
`;

/** ARGV: id. */
export const DISCOUNT_FILTER = `return redis.call('ZREM', KEYS[1], ARGV[1])`;
