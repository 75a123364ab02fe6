import assert from "node:assert/strict";
import { test } from "node:test";
import { prepareScenarios, shortScenarios } from "./runScenarios.ts";

const prepared = await prepareScenarios();

/** All scenarios: `npm run long -- feed-faults`. */
for (const round of prepared.roundsOf(shortScenarios(prepared.scenarios))) {
  test(`the recorded feed with faults: ${round.map(({ name }) => name).join("; ")}`, async (t) => {
    for (const { name, problems, modes, samples } of await prepared.run(round)) {
      assert.deepEqual(problems, [], name);
      assert.ok(samples > 0, name);
      t.diagnostic(`${name}: ${samples} reads, ${modes.join()}`);
    }
  });
}
