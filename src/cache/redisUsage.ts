import type { RunScript } from "../core/sharedValues.ts";
import {
  dayBefore,
  KEY_FIELD,
  MAX_KEYS_A_DAY,
  OTHER_FIELD,
  type StoredUsage,
  USAGE_DAYS,
  type UsageBatch,
  type UsageStore,
} from "../core/usageStore.ts";

/** Increased when the fields or their values change their form. */
const FORMAT = 1;
const DAY_SECONDS = 86_400;
const SINCE = "since";

/**
 * A day is a hash: amounts by field, the newest batch of each run, and the earliest time. All fields are written by one command,
 * so that a batch counts as a whole. A key of another type has no amounts.
 */
const ADD = `local key = KEYS[1]
local kind = redis.call('TYPE', key).ok
if kind ~= 'hash' and kind ~= 'none' then
  redis.call('DEL', key)
end
local run, number, since = ARGV[1], ARGV[2], ARGV[3]
if (tonumber(redis.call('HGET', key, run) or '') or 0) >= tonumber(number) then
  return 0
end
local room = ${MAX_KEYS_A_DAY} - redis.call('HLEN', key)
local sums = {}
for index = 5, #ARGV, 2 do
  local field = ARGV[index]
  local before = sums[field] or redis.call('HGET', key, field)
  if not before and string.sub(field, 1, ${KEY_FIELD.length}) == '${KEY_FIELD}' then
    if room > 0 then
      room = room - 1
    else
      field = '${OTHER_FIELD}'
      before = sums[field] or redis.call('HGET', key, field)
    end
  end
  local old = string.gmatch(before or '', '%S+')
  local sum = {}
  for amount in string.gmatch(ARGV[index + 1], '%S+') do
    sum[#sum + 1] = string.format('%.17g', tonumber(amount) + (tonumber(old() or '') or 0))
  end
  sums[field] = table.concat(sum, ' ')
end
local earliest = tonumber(redis.call('HGET', key, '${SINCE}') or '') or tonumber(since)
local set = {run, number, '${SINCE}', string.format('%.0f', math.min(earliest, tonumber(since)))}
for field, sum in pairs(sums) do
  set[#set + 1] = field
  set[#set + 1] = sum
end
redis.call('HSET', key, unpack(set))
redis.call('EXPIRE', key, ARGV[4])
return 1`;

const READ = "return redis.call('HGETALL', KEYS[1])";
/** Returns the fields that the hash has, each with its value. */
const READ_FIELDS = `local found = {}
for _, field in ipairs(ARGV) do
  local value = redis.call('HGET', KEYS[1], field)
  if value then
    found[#found + 1] = field
    found[#found + 1] = value
  end
end
return found`;
const TOUCH = "return redis.call('TOUCH', KEYS[1])";

const keyOf = (day: string): string => `forebay:usage${FORMAT}:${day}`;

/** Turns the fields and values of a hash into amounts. Values of another form are left out. */
const parseHash = (list: readonly unknown[]): StoredUsage | undefined => {
  const fields = new Map<string, readonly number[]>();
  for (let index = 0; index + 1 < list.length; index += 2) {
    const amounts = String(list[index + 1])
      .split(" ")
      .map(Number);
    if (amounts.every(Number.isFinite)) {
      fields.set(String(list[index]), amounts);
    }
  }
  const sinceMs = fields.get(SINCE)?.[0];
  fields.delete(SINCE);
  return sinceMs === undefined
    ? undefined
    : { sinceMs, rows: [...fields].filter(([field]) => !field.startsWith("run:")) };
};

/** The usage of all replicas in Redis. */
export class RedisUsage implements UsageStore {
  readonly name = "redis";
  readonly #run: RunScript;
  /** The age in days of the day that is touched next. */
  #touched = 0;

  constructor(run: RunScript) {
    this.#run = run;
  }

  async add({ run, number, day, sinceMs, rows }: UsageBatch): Promise<void> {
    const fields = rows.flatMap(([field, amounts]) => [field, amounts.join(" ")]);
    await this.#run(ADD, keyOf(day), [`run:${run}`, number, sinceMs, USAGE_DAYS * DAY_SECONDS, ...fields]);
    this.#touched = (this.#touched % (USAGE_DAYS - 1)) + 1;
    // With `allkeys-lru`, a Redis that is full of newer entries would evict earlier days.
    await this.#run(TOUCH, keyOf(dayBefore(day, this.#touched)), []).catch(() => undefined);
  }

  async read(day: string, fields?: readonly string[]): Promise<StoredUsage | undefined> {
    const reply = await (fields === undefined
      ? this.#run(READ, keyOf(day), [])
      : this.#run(READ_FIELDS, keyOf(day), [SINCE, ...fields]));
    return Array.isArray(reply) ? parseHash(reply) : undefined;
  }
}
