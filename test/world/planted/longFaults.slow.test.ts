import assert from "node:assert/strict";
import { test } from "node:test";
import { QUICK_FAULTS, testPlantedFaults } from "./foundFaults.ts";
import { runWithFault } from "./runWithFault.ts";

const CONTROL_SECONDS = 5;

testPlantedFaults((fault) => !QUICK_FAULTS.includes(fault));

test("state-differential finds nothing without a fault", async () => {
  const { differences, output } = await runWithFault("none", CONTROL_SECONDS);
  assert.equal(differences, 0, output);
  assert.match(output, /"read":[1-9]/, "write sets were read");
});
