import assert from "node:assert/strict";
import { test } from "node:test";
import { LONG_FAULTS } from "./longFaults.ts";
import { runWithFault, testWithFault } from "./runWithFault.ts";

/** A run ends at its first difference, which takes 2 to 25 s, several times that on a busy machine. */
const MAX_SECONDS = 240;

/** The faults of `npm test`: one of each long run. */
export const QUICK_FAULTS: readonly string[] = ["lostFeeRecipient", "touchedAuthority"];

/** Tests that a long run finds each of these faults. Audits follow each other at 30 s: the long run itself shows what they find. */
export const testPlantedFaults = (has: (fault: string) => boolean): void => {
  for (const [fault, { run = "state-differential", isFoundByService, test: file, testName }] of Object.entries(
    LONG_FAULTS,
  )) {
    if (fault === "none" || isFoundByService === true || !has(fault)) {
      continue;
    }
    test(`${file ?? run} finds the planted fault ${fault}`, async () => {
      const { differences, output } = await (file === undefined
        ? runWithFault(fault, MAX_SECONDS)
        : testWithFault(file, fault, testName));
      assert.ok(differences > 0, output);
    });
  }
};
