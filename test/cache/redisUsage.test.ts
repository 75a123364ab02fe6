import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { RedisUsage } from "../../src/cache/redisUsage.ts";
import { type Amounts, NO_AMOUNTS, type UsageBatch } from "../../src/core/usageStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const DAY = "2026-11-26";
const KEY = `forebay:usage2:${DAY}`;

const amounts = (calls: number, units = 0): Amounts => ({ ...NO_AMOUNTS, calls, units });

const batch = (change: Partial<UsageBatch>): UsageBatch => ({
  ...{ run: "one", number: 1, day: DAY, sinceMs: 1_000, rows: [["a", amounts(1, 2.5)]] },
  ...change,
});

const start = async (t: TestContext) => {
  const redis = await startRedis(t);
  const store = new RedisStore({
    url: redis.url,
    timeoutMs: 1_000,
    telemetry: createTelemetry({ level: "silent" }),
  });
  t.after(() => store.close());
  const usage = new RedisUsage(store.run);
  await until(
    () =>
      usage.read(DAY).then(
        () => true,
        () => false,
      ),
    "Redis is connected",
  );
  return { redis, usage };
};

const rowsOf = async (usage: RedisUsage) => Object.fromEntries((await usage.read(DAY))?.rows ?? []);

test("batches of all runs are summed, each once, and the day expires after 35 days", async (t) => {
  const { redis, usage } = await start(t);
  assert.equal(await usage.read(DAY), undefined);
  assert.deepEqual(await usage.add(batch({})), [2.5]);
  assert.deepEqual(await usage.add(batch({})), [2.5]);
  await usage.add(batch({ number: 2, rows: [["a", amounts(9_007_199_254_000_000, 0.5)]] }));
  await usage.add(batch({ number: 1 }));
  const rows = [
    ["nodes op clients", amounts(3)],
    ["a", amounts(1, 1)],
  ] as const;
  assert.deepEqual(await usage.add(batch({ run: "two", sinceMs: 2_000, rows })), [0, 4]);
  assert.deepEqual(await usage.read(DAY).then((day) => day?.sinceMs), 1_000);
  assert.deepEqual(await rowsOf(usage), {
    a: amounts(9_007_199_254_000_002, 4),
    "nodes op clients": amounts(3),
  });
  assert.equal(await usage.read("2026-11-25"), undefined);
  const seconds = await redis.admin.ttl(KEY);
  assert.ok(seconds > 34 * 86_400 && seconds <= 35 * 86_400, `${seconds}`);
});

test("a row without amounts learns the units of all replicas", async (t) => {
  const { usage } = await start(t);
  await usage.add(batch({ rows: [["budgets key wallet", amounts(1, 7)]] }));
  assert.deepEqual(await usage.add(batch({ run: "two", rows: [["budgets key wallet", NO_AMOUNTS]] })), [7]);
});

test("values that another program has written are no amounts, and counting goes on", async (t) => {
  const { redis, usage } = await start(t);
  await usage.add(batch({}));
  await redis.admin.set(KEY, "noise");
  await usage.add(batch({ number: 2 }));
  assert.deepEqual(await rowsOf(usage), { a: amounts(1, 2.5) });
  await redis.admin.hset(KEY, { "noise:a": "4", "run:one": "noise" });
  await usage.add(batch({ number: 3 }));
  assert.deepEqual(await rowsOf(usage), { a: amounts(2, 5) });
});

test("the earlier days are touched in turn, so that a full Redis evicts other entries", async () => {
  const touched: string[] = [];
  const usage = new RedisUsage(async (lua, key) => {
    if (lua.includes("TOUCH")) {
      touched.push(key);
    }
  });
  for (let number = 1; number <= 34 + 1; number++) {
    await usage.add(batch({ number }));
  }
  assert.deepEqual(
    [touched[0], touched[33], touched[34]],
    ["forebay:usage2:2026-11-25", "forebay:usage2:2026-10-23", "forebay:usage2:2026-11-25"],
  );
});
