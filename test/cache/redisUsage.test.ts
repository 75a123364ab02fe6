import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { RedisUsage } from "../../src/cache/redisUsage.ts";
import type { UsageBatch } from "../../src/core/usageStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const DAY = "2026-11-26";
const KEY = `forebay:usage1:${DAY}`;

const batch = (change: Partial<UsageBatch>): UsageBatch => ({
  ...{ run: "one", number: 1, day: DAY, sinceMs: 1_000, rows: [["key:a", [1, 2.5]]] },
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
  await usage.add(batch({}));
  await usage.add(batch({}));
  await usage.add(batch({ number: 2, rows: [["key:a", [9_007_199_254_000_000, 0.5]]] }));
  await usage.add(batch({ number: 1 }));
  await usage.add(
    batch({
      run: "two",
      sinceMs: 500,
      rows: [
        ["key:a", [1, 1]],
        ["row:nodes op clients", [3, 0]],
      ],
    }),
  );
  assert.deepEqual(await usage.read(DAY).then((day) => day?.sinceMs), 500);
  assert.deepEqual(await rowsOf(usage), { "key:a": [9_007_199_254_000_002, 4], "row:nodes op clients": [3, 0] });
  assert.deepEqual(await usage.read(DAY, ["row:nodes op clients", "key:b"]), {
    sinceMs: 500,
    rows: [["row:nodes op clients", [3, 0]]],
  });
  assert.equal(await usage.read("2026-11-25", ["key:a"]), undefined);
  const seconds = await redis.admin.ttl(KEY);
  assert.ok(seconds > 34 * 86_400 && seconds <= 35 * 86_400, `${seconds}`);
});

test("keys above the limit are summed as one, and other rows never", async (t) => {
  const { usage } = await start(t);
  for (let number = 1; number <= 11; number++) {
    const rows = Array.from({ length: 1_000 }, (_, index) => [`key:${number}-${index}`, [1]] as const);
    await usage.add(batch({ number, rows }));
  }
  await usage.add(
    batch({
      number: 12,
      rows: [
        ["row:nodes op clients", [5]],
        ["key:1-0", [7]],
      ],
    }),
  );
  const rows = await rowsOf(usage);
  const keys = Object.entries(rows).filter(([field]) => field.startsWith("key:"));
  assert.ok(keys.length > 9_900 && keys.length <= 10_001, `${keys.length}`);
  assert.equal(
    keys.reduce((sum, [, [amount = 0]]) => sum + amount, 0),
    11_007,
  );
  assert.deepEqual([rows["row:nodes op clients"], rows["key:1-0"]], [[5], [8]]);
});

test("values that another program has written are no amounts, and counting goes on", async (t) => {
  const { redis, usage } = await start(t);
  await usage.add(batch({}));
  await redis.admin.set(KEY, "noise");
  await usage.add(batch({ number: 2 }));
  assert.deepEqual(await rowsOf(usage), { "key:a": [1, 2.5] });
  await redis.admin.hset(KEY, { "key:a": "noise 4", since: "noise", "run:one": "noise" });
  await usage.add(batch({ number: 3 }));
  assert.deepEqual(await rowsOf(usage), { "key:a": [1, 6.5] });
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
    ["forebay:usage1:2026-11-25", "forebay:usage1:2026-10-23", "forebay:usage1:2026-11-25"],
  );
});
