import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Amounts, NO_AMOUNTS, type UsageBatch } from "../../src/core/usageStore.ts";
import { EntryDatabase } from "../../src/storage/entryDatabase.ts";

const MAX_BYTES = 16 * 1024 * 1024;
const DAY = "2026-11-26";

const amounts = (calls: number, units = 0): Amounts => ({ ...NO_AMOUNTS, calls, units });

const batch = (change: Partial<UsageBatch>): UsageBatch => ({
  ...{ run: "one", number: 1, day: DAY, sinceMs: 1_000, rows: [["a", amounts(1, 2.5)]] },
  ...change,
});

const open = async (t: TestContext) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-usage-"));
  const reopen = (): EntryDatabase => EntryDatabase.open(folder, MAX_BYTES) ?? assert.fail("the folder is locked");
  t.after(() => rm(folder, { recursive: true, force: true }));
  return { database: reopen(), reopen };
};

test("batches of all runs are summed, each once, also after the folder was opened again", async (t) => {
  const { database: first, reopen } = await open(t);
  assert.equal(first.usage(DAY), undefined);
  first.addUsage(batch({}));
  first.addUsage(batch({ number: 2, rows: [["a", amounts(9_007_199_254_000_000, 0.5)]] }));
  first.close(false);
  const database = reopen();
  t.after(() => database.close(false));
  database.addUsage(batch({}));
  database.addUsage(batch({ number: 2 }));
  database.addUsage(batch({ run: "two", sinceMs: 500, rows: [["nodes op clients", amounts(3)]] }));
  assert.deepEqual(database.usage(DAY), {
    sinceMs: 500,
    rows: [
      ["a", amounts(9_007_199_254_000_001, 3)],
      ["nodes op clients", amounts(3)],
    ],
  });
  const learned = batch({ run: "three", rows: [["a", NO_AMOUNTS]] });
  assert.deepEqual(database.addUsage(learned), [3]);
  assert.equal(database.usage("2026-11-25"), undefined);
});

test("keys above the limit of a small folder are summed as one, and other rows never", async (t) => {
  const { database } = await open(t);
  t.after(() => database.close(false));
  const rows = Array.from({ length: 1_000 }, (_, index) => [`${index}`, amounts(1)] as const);
  database.addUsage(batch({ rows: [...rows, ["nodes op clients", amounts(5)], ["0", amounts(7)]] }));
  const stored = new Map(database.usage(DAY)?.rows);
  const keys = [...stored].filter(([row]) => !row.includes(" "));
  assert.ok(keys.length < 310, `${keys.length}`);
  assert.equal(
    keys.reduce((sum, [, { calls }]) => sum + calls, 0),
    1_007,
  );
  assert.deepEqual([stored.get("nodes op clients"), stored.get("0")], [amounts(5), amounts(8)]);
});

test("a day is kept for 35 days", async (t) => {
  const { database } = await open(t);
  t.after(() => database.close(false));
  database.addUsage(batch({ day: "2026-10-23" }));
  database.addUsage(batch({ day: "2026-10-22" }));
  database.addUsage(batch({ day: DAY, number: 2 }));
  assert.deepEqual(
    [DAY, "2026-10-23", "2026-10-22"].map((day) => database.usage(day) !== undefined),
    [true, true, false],
  );
});

test("a batch that fails is not added in part", async (t) => {
  const { database } = await open(t);
  t.after(() => database.close(false));
  database.addUsage(batch({}));
  const huge = Array.from({ length: 200 }, (_, index) => [`nodes ${"x".repeat(100_000)}${index}`, amounts(1)] as const);
  assert.throws(() => database.addUsage(batch({ number: 2, rows: [["a", amounts(1, 1)], ...huge] })), /full/);
  assert.deepEqual(database.usage(DAY)?.rows, [["a", amounts(1, 2.5)]]);
  database.addUsage(batch({ number: 2 }));
  assert.deepEqual(database.usage(DAY)?.rows, [["a", amounts(2, 5)]]);
});
