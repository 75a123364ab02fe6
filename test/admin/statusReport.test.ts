import assert from "node:assert/strict";
import { test } from "node:test";
import type { Status, TodayStatus } from "../../src/admin/status.ts";
import { StatusReport } from "../../src/admin/statusReport.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const TODAY: TodayStatus = {
  day: "2026-11-27",
  calls: 3,
  saved: { calls: 2, units: 40 },
  spent: { calls: 1, units: 20 },
};

const createReport = (readToday: () => Promise<TodayStatus>): StatusReport =>
  new StatusReport({
    version: "0.1.0",
    metrics: createTelemetry({ level: "silent" }).metrics,
    readToday,
    chains: () => [],
    isDraining: () => false,
  });

test("the usage of the day is read once for all viewers of its time, and again after an error", async () => {
  const results: (() => Promise<TodayStatus>)[] = [() => Promise.reject(new Error("no Redis")), async () => TODAY];
  let reads = 0;
  const report = createReport(() => {
    const result = results[reads];
    reads++;
    return result?.() ?? Promise.reject(new Error("another read"));
  });
  const todayNow = async (): Promise<unknown> => (JSON.parse(await report.read()) as Status).today;
  assert.deepEqual(await Promise.all([todayNow(), todayNow()]), [null, null]);
  assert.deepEqual(await Promise.all([todayNow(), todayNow()]), [TODAY, TODAY]);
  assert.deepEqual([await todayNow(), reads], [TODAY, 2]);
});

test("a store that does not respond does not hold the status", async () => {
  const report = createReport(() => new Promise(() => undefined));
  assert.equal((JSON.parse(await report.read()) as Status).today, null);
});
