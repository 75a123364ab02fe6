import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { INVENTED_SCENARIOS } from "./inventedScenarios.ts";
import { playInvented } from "./playInvented.ts";

const RUN_MS = 4_000;

describe("an invented head is never served where a majority of honest origins is usable", { concurrency: 4 }, () => {
  for (const scenario of INVENTED_SCENARIOS) {
    test(scenario.name, async () => {
      const { faults } = await playInvented(scenario, RUN_MS);
      assert.deepEqual(faults, []);
    });
  }
});
