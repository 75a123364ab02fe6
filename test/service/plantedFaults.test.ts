import assert from "node:assert/strict";
import { test } from "node:test";
import { PLANTED_FAULTS } from "../long/support/plantedFaults.ts";
import { runWithFault } from "../long/support/runWithFault.ts";

/** A run ends at its first difference, which takes a few seconds. */
const MAX_SECONDS = 60;
const CONTROL_SECONDS = 5;

/** Audits follow each other at 30 s: the long run itself shows that they find a fault. */
const isQuick = ([name, { isFoundByService }]: (typeof FAULTS)[number]): boolean =>
  name !== "none" && isFoundByService === undefined;
const FAULTS = Object.entries(PLANTED_FAULTS);

for (const [fault, { run = "state-differential" }] of FAULTS.filter(isQuick)) {
  test(`${run} finds the planted fault ${fault}`, async () => {
    const { differences, output } = await runWithFault(fault, MAX_SECONDS);
    assert.ok(differences > 0, output);
  });
}

test("state-differential finds nothing without a fault", async () => {
  const { differences, output } = await runWithFault("none", CONTROL_SECONDS);
  assert.equal(differences, 0, output);
  assert.match(output, /"read":[1-9]/, "write sets were read");
});
