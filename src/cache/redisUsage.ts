import type { RunScript } from "../core/sharedValues.ts";
import {
  AMOUNTS,
  dayBefore,
  NO_AMOUNTS,
  type StoredUsage,
  USAGE_DAYS,
  type UsageBatch,
  type UsageRow,
  type UsageStore,
} from "../core/usageStore.ts";

/** Increased when the fields or their values change their form. */
const FORMAT = 2;
const DAY_SECONDS = 86_400;
const SINCE = "since";

/**
 * A day is a hash. Its fields are the amounts of rows, the newest batch of each run, and the time of the first batch. A batch that
 * was sent before adds nothing. Returns the values of the amounts. A key of another type has none.
 */
const ADD = `local key, run, number = KEYS[1], ARGV[1], ARGV[2]
if redis.call('TYPE', key).ok ~= 'hash' then
  redis.call('DEL', key)
end
local isNew = (tonumber(redis.call('HGET', key, run) or '') or 0) < tonumber(number)
local sums = {}
for index = 5, #ARGV, 2 do
  sums[#sums + 1] = redis.call('HINCRBYFLOAT', key, ARGV[index], isNew and ARGV[index + 1] or '0')
end
redis.call('HSETNX', key, '${SINCE}', ARGV[3])
if isNew then
  redis.call('HSET', key, run, number)
end
redis.call('EXPIRE', key, ARGV[4])
return sums`;

const READ = "return redis.call('HGETALL', KEYS[1])";
const TOUCH = "return redis.call('TOUCH', KEYS[1])";

const keyOf = (day: string): string => `forebay:usage${FORMAT}:${day}`;

/** Returns the fields of a row that a batch changes, with their amounts. The first one is that of the units. */
const fieldsOf = ([row, amounts]: UsageRow): readonly (readonly [field: string, amount: number])[] => [
  [`units:${row}`, amounts.units],
  ...AMOUNTS.filter((name) => name !== "units" && amounts[name] !== 0).map(
    (name) => [`${name}:${row}`, amounts[name]] as const,
  ),
];

/** Turns the fields and values of a hash into rows. Fields and values of another form are left out. */
const parseHash = (list: readonly unknown[]): StoredUsage | undefined => {
  const rows = new Map<string, Record<(typeof AMOUNTS)[number], number>>();
  let sinceMs = Number.NaN;
  for (let index = 0; index + 1 < list.length; index += 2) {
    const [name = "", ...row] = String(list[index]).split(":");
    const value = Number(list[index + 1]);
    const amount = AMOUNTS.find((each) => each === name);
    if (name === SINCE) {
      sinceMs = value;
    } else if (amount !== undefined && Number.isFinite(value)) {
      const amounts = rows.get(row.join(":")) ?? { ...NO_AMOUNTS };
      rows.set(row.join(":"), amounts);
      amounts[amount] = value;
    }
  }
  return Number.isNaN(sinceMs) ? undefined : { sinceMs, rows: [...rows] };
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

  async add({ run, number, day, sinceMs, rows }: UsageBatch): Promise<readonly number[]> {
    const fields = rows.map(fieldsOf);
    const reply = await this.#run(ADD, keyOf(day), [
      ...[`run:${run}`, number, sinceMs, USAGE_DAYS * DAY_SECONDS],
      ...fields.flat(2),
    ]);
    this.#touched = (this.#touched % (USAGE_DAYS - 1)) + 1;
    // With `allkeys-lru`, a Redis that is full of newer entries would evict earlier days.
    await this.#run(TOUCH, keyOf(dayBefore(day, this.#touched)), []).catch(() => undefined);
    const sums = Array.isArray(reply) ? reply : [];
    let at = 0;
    return fields.map(({ length }) => {
      const units = Number(sums[at]);
      at += length;
      return units;
    });
  }

  async read(day: string): Promise<StoredUsage | undefined> {
    const reply = await this.#run(READ, keyOf(day), []);
    return Array.isArray(reply) ? parseHash(reply) : undefined;
  }
}
