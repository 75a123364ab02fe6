import assert from "node:assert/strict";
import { test } from "node:test";
import { UnitLedger } from "../../src/state/unitLedger.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

test("units spent and saved are counted, and audits may cost 2 % of what is saved", async () => {
  const { metrics } = createTelemetry({ level: "silent" });
  const ledger = new UnitLedger("chain", metrics);
  ledger.save(10_000);
  assert.equal(ledger.auditUnits, 200);
  ledger.spend("audit", 126);
  ledger.spend("writeSets", 40);
  assert.equal(ledger.auditUnits, 74);
  ledger.save(10_000_000);
  assert.equal(ledger.auditUnits, 10_000);
  const saved = await metrics.stateUnitsSaved.get();
  assert.deepEqual(
    saved.values.map(({ value }) => value),
    [10_010_000],
  );
  const spent = await metrics.stateUnitsSpent.get();
  assert.deepEqual(
    spent.values.map(({ labels, value }) => [labels.purpose, value]),
    [
      ["audit", 126],
      ["writeSets", 40],
    ],
  );
});
