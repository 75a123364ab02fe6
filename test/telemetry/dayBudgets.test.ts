import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { UsageStore } from "../../src/core/usageStore.ts";
import { BudgetReports } from "../../src/telemetry/budgetReports.ts";
import { MemoryUsage } from "../../src/telemetry/memoryUsage.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { UsageDays } from "../../src/telemetry/usageDays.ts";
import { UsageLedger } from "../../src/telemetry/usageLedger.ts";

const DAY_MS = 86_400_000;
const START = Date.parse("2026-11-26T23:00:00Z");
const WALLET = { of: { key: "wallet" }, unitsPerDay: 100 };

interface BudgetLine {
  readonly clientId: string;
  readonly spentUnits: number;
}

/** A store of all replicas, which can be lost. */
const createShared = () => {
  const state = { isLost: false, sums: new MemoryUsage(10) };
  const sums = (): MemoryUsage => {
    if (state.isLost) {
      throw new Error("no reply");
    }
    return state.sums;
  };
  const store: UsageStore = {
    name: "redis",
    add: async (batch) => sums().add(batch),
    read: async (day) => sums().read(day),
  };
  return { store, state };
};

const createReplica = async (
  t: TestContext,
  clock: { readonly nowMs: number },
  store: UsageStore = new MemoryUsage(10),
) => {
  const nowMs = () => clock.nowMs;
  const ledger = new UsageLedger({ topKeys: 10, metrics: undefined, nowMs });
  ledger.budgets.configure([WALLET]);
  const days = new UsageDays(ledger, store, nowMs);
  t.after(() => days.close());
  await days.exchange();
  const budget = ledger.budgets.find({ key: "wallet" });
  assert.ok(budget);
  return { ledger, days, budget };
};

test("a budget without a store is that of the process, and ends at 00:00 UTC", async (t) => {
  const clock = { nowMs: START };
  const { budget, ledger } = await createReplica(t, clock);
  budget.spend(99);
  assert.deepEqual([budget.spentUnits, budget.isSpent], [99, false]);
  budget.spend(26);
  assert.deepEqual([budget.spentUnits, budget.isSpent, budget.endsInMs], [125, true, 3_600_000]);
  assert.equal(new Date(budget.endsAtMs).toISOString(), "2026-11-27T00:00:00.000Z");
  clock.nowMs += 3_600_000;
  assert.deepEqual([budget.spentUnits, budget.isSpent, budget.endsInMs], [0, false, DAY_MS]);
  assert.equal(ledger.budgets.find({ key: "other" }), undefined);
});

test("replicas know what the others have spent after an exchange, and count each unit once", async (t) => {
  const clock = { nowMs: START };
  const { store } = createShared();
  const one = await createReplica(t, clock, store);
  const two = await createReplica(t, clock, store);
  one.budget.spend(40);
  two.budget.spend(50);
  await one.days.exchange();
  one.budget.spend(1);
  await two.days.exchange();
  await one.days.exchange();
  assert.deepEqual([one.budget.spentUnits, two.budget.spentUnits], [91, 90]);
  await two.days.exchange();
  assert.deepEqual([one.budget.spentUnits, two.budget.spentUnits], [91, 91]);
  // After a restart, the day goes on.
  const three = await createReplica(t, clock, store);
  await three.days.exchange();
  assert.equal(three.budget.spentUnits, 91);
  assert.deepEqual(three.ledger.report(10).keys, []);
});

test("units that are spent during an exchange are counted", async (t) => {
  const clock = { nowMs: START };
  const { store } = createShared();
  const { days, budget } = await createReplica(t, clock, store);
  budget.spend(10);
  const exchanged = days.exchange();
  budget.spend(5);
  await exchanged;
  assert.equal(budget.spentUnits, 15);
});

test("while the store is lost, a replica counts what it spends itself, and nothing that was spent is forgotten", async (t) => {
  const clock = { nowMs: START };
  const { store, state } = createShared();
  const { days, budget } = await createReplica(t, clock, store);
  budget.spend(60);
  await days.exchange();
  state.isLost = true;
  budget.spend(30);
  await assert.rejects(days.exchange(), /no reply/);
  assert.equal(budget.spentUnits, 90);
  state.isLost = false;
  state.sums = new MemoryUsage(10);
  await days.exchange();
  assert.equal(budget.spentUnits, 90);
  // The next day begins at 0.
  clock.nowMs += DAY_MS;
  await days.exchange();
  assert.equal(budget.spentUnits, 0);
});

test("a reload can change a budget, and keeps what was spent", async (t) => {
  const { budget, ledger } = await createReplica(t, { nowMs: START });
  budget.spend(60);
  ledger.budgets.configure([{ ...WALLET, unitsPerDay: 50 }]);
  assert.deepEqual([budget.isSpent, ledger.budgets.find({ key: "wallet" })], [true, budget]);
  ledger.budgets.configure([]);
  assert.deepEqual([ledger.budgets.find({ key: "wallet" }), ledger.budgets.rows], [undefined, []]);
});

test("a line is logged once at 80 % and once at 100 %, and the metric has the share", async (t) => {
  const lines: unknown[] = [];
  const { log, metrics } = createTelemetry({ level: "silent" });
  log.warn = ({ clientId, spentUnits }: BudgetLine, text?: unknown) => lines.push([text, clientId, spentUnits]);
  const clock = { nowMs: START };
  const { budget, ledger } = await createReplica(t, clock);
  const reports = new BudgetReports(ledger.budgets, { log, metrics });
  t.after(() => reports.close());
  const shares = async () => (await metrics.keyBudgetRatio.get()).values.map(({ value }) => value);
  for (const units of [79, 1, 10, 10, 10]) {
    budget.spend(units);
    reports.report();
    reports.report();
  }
  assert.deepEqual(lines, [
    ["80 % of the units of today are spent", "wallet", 80],
    ["the units of today are spent: calls of the key are refused until 00:00 UTC", "wallet", 100],
  ]);
  assert.deepEqual(await shares(), [1.1]);
  clock.nowMs += DAY_MS;
  reports.report();
  assert.deepEqual([await shares(), lines.length], [[0], 2]);
  ledger.budgets.configure([]);
  reports.report();
  assert.deepEqual(await shares(), []);
});
