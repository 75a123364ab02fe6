import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { StoredUsage, UsageBatch, UsageStore } from "../../src/core/usageStore.ts";
import { MemoryUsage } from "../../src/telemetry/memoryUsage.ts";
import { UsageDays } from "../../src/telemetry/usageDays.ts";
import { UsageLedger } from "../../src/telemetry/usageLedger.ts";

const DAY_MS = 86_400_000;
const START = Date.parse("2026-11-26T23:00:00Z");

const create = (t: TestContext, store?: UsageStore, topKeys = 100) => {
  const ledger = new UsageLedger({ topKeys, metrics: undefined });
  const clock = { nowMs: START };
  const days = new UsageDays(ledger, store ?? new MemoryUsage(topKeys), () => clock.nowMs);
  t.after(() => days.close());
  return { ledger, days, clock };
};

/** A store that keeps the batches that it gets, each once. */
const createFakeStore = () => {
  const batches = new Map<string, UsageBatch>();
  const fault: { now: "none" | "lost" | "lostReply" } = { now: "none" };
  const store: UsageStore = {
    name: "redis",
    add: async (batch) => {
      const mode = fault.now;
      if (mode !== "lost") {
        batches.set(`${batch.run} ${batch.number}`, batch);
      }
      if (mode !== "none") {
        throw new Error("no reply");
      }
      return batch.rows.map(() => 0);
    },
    read: async (day): Promise<StoredUsage | undefined> => {
      if (fault.now !== "none") {
        throw new Error("no reply");
      }
      const own = [...batches.values()].filter((batch) => batch.day === day);
      return own.length === 0
        ? undefined
        : { sinceMs: Math.min(...own.map(({ sinceMs }) => sinceMs)), rows: own.flatMap(({ rows }) => rows) };
    },
  };
  return { store, batches, fault };
};

const unitsOf = async (days: UsageDays, count = 35) => {
  const report = await days.report(count, 100);
  return report.days.map(({ day, total }) => [day, total.units]);
};

test("without a store, the days since the start are in memory", async (t) => {
  const { ledger, days, clock } = create(t);
  ledger.of("a").countCall(5, false, false);
  ledger.addresses("op")("127.0.0.1").countCall(3, true, false);
  ledger.nodeCalls("op")({ clientId: "127.0.0.1", connection: {} }, 8);
  await days.exchange();
  clock.nowMs += 2 * DAY_MS;
  ledger.of("a").countCall(7, false, true);
  const { daysFrom, days: list } = await days.report(35, 10);
  assert.equal(daysFrom, "memory");
  assert.deepEqual(
    list.map(({ day, since, keys, total }) => [day, since, keys.length, total.units]),
    [
      ["2026-11-28", "2026-11-28T00:00:00.000Z", 1, 7],
      ["2026-11-26", "2026-11-26T23:00:00.000Z", 1, 8],
    ],
  );
  assert.deepEqual(list[1]?.bill, { calls: 1, units: 8 });
  assert.deepEqual(await unitsOf(days, 2), [["2026-11-28", 7]]);
});

test("a day in memory that is over keeps the most expensive keys and its total, and ends after 35 days", async (t) => {
  const { ledger, days, clock } = create(t, undefined, 2);
  for (let index = 1; index <= 50; index++) {
    ledger.of(`key-${index}`).countCall(index, false, false);
  }
  ledger.nodeCalls("op")(undefined, 4);
  await days.exchange();
  clock.nowMs += DAY_MS;
  ledger.of("key-1").countCall(1, false, false);
  const [, before] = (await days.report(35, 100)).days;
  assert.deepEqual(
    before?.keys.map(({ key }) => key),
    ["other", "key-50", "key-49"],
  );
  assert.deepEqual([before?.total.units, before?.bill.units], [1_275, 4]);
  clock.nowMs += 34 * DAY_MS;
  ledger.of("key-1").countCall(1, false, false);
  assert.deepEqual(await unitsOf(days), [
    ["2026-12-31", 1],
    ["2026-11-27", 1],
  ]);
});

test("what a store does not take waits, on its own day, and is counted once", async (t) => {
  const { store, batches, fault } = createFakeStore();
  const { ledger, days, clock } = create(t, store);
  ledger.of("a").countCall(1, false, false);
  await days.exchange();
  for (const mode of ["lostReply", "lost", "lostReply"] as const) {
    fault.now = mode;
    ledger.of("a").countCall(10, false, false);
    await assert.rejects(days.exchange(), /no reply/);
  }
  await assert.rejects(days.report(1, 10), /no reply/);
  clock.nowMs += 2 * 3_600_000;
  ledger.of("a").countCall(100, false, false);
  await assert.rejects(days.exchange(), /no reply/);
  fault.now = "none";
  assert.deepEqual(await unitsOf(days), [
    ["2026-11-27", 100],
    ["2026-11-26", 31],
  ]);
  const written = batches.size;
  await days.exchange();
  assert.equal(batches.size, written);
});

test("many keys are written in batches, and the last ones when the process ends", async (t) => {
  const { store, batches } = createFakeStore();
  const { ledger, days } = create(t, store);
  for (let index = 0; index < 2_500; index++) {
    ledger.of(`key-${index}`).countCall(1, false, false);
  }
  await days.close();
  assert.deepEqual(
    [...batches.values()].map(({ rows }) => rows.length),
    Array.from({ length: 10 }, () => 250),
  );
});
