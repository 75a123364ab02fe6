import assert from "node:assert/strict";
import { test } from "node:test";
import { runTruth } from "../../truth/truthRun.ts";
import { countFaults } from "../../truth/truthTable.ts";
import { createForebayProxy } from "../proxies/forebayProxy.ts";

/** Blocks of each scenario. No answer is wrong because it is late: only values are judged. */
const STEPS = 2;

test("forebay has no wrong answer, and takes nothing back, in any scenario", async (t) => {
  const report = await runTruth({ proxy: createForebayProxy(), seconds: 0, steps: STEPS, seed: 1 });
  for (const row of report.rows) {
    await t.test(row.scenario, () => {
      assert.equal(countFaults({ rows: [row] }), 0, JSON.stringify(row));
      assert.ok(row.score === undefined || row.score.calls > 0);
      assert.ok(row.scenario !== "honest" || Object.keys(row.score?.errors ?? {}).length === 0, JSON.stringify(row));
    });
  }
});
