import assert from "node:assert/strict";
import { test } from "node:test";
import { runSoak } from "../../soak/soakRun.ts";
import { SOAK_FAULTS } from "./soakFaults.ts";

/** A run ends as soon as the fault is found, which takes 3 to 45 s. */
const MAX_SECONDS = 240;
const SEED = 1;

for (const planted of Object.keys(SOAK_FAULTS)) {
  test(`the soak finds the planted fault ${planted}`, async () => {
    const { passed, ...report } = await runSoak({ seconds: MAX_SECONDS, seed: SEED, planted });
    assert.ok(passed, JSON.stringify(report));
  });
}
