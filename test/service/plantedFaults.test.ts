import assert from "node:assert/strict";
import { test } from "node:test";
import { PLANTED_FAULTS } from "../long/support/plantedFaults.ts";
import { runWithFault } from "../long/support/runWithFault.ts";

/** A run ends at its first difference, which takes a few seconds. */
const MAX_SECONDS = 60;
const CONTROL_SECONDS = 5;

for (const fault of Object.keys(PLANTED_FAULTS).filter((name) => name !== "none")) {
  test(`state-differential finds the planted fault ${fault}`, async () => {
    const { differences, output } = await runWithFault(fault, MAX_SECONDS);
    assert.ok(differences > 0, output);
  });
}

test("state-differential finds nothing without a fault", async () => {
  const { differences, output } = await runWithFault("none", CONTROL_SECONDS);
  assert.equal(differences, 0, output);
  assert.match(output, /"read":[1-9]/, "write sets were read");
});
