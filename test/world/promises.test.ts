import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { ROOT, readRepositoryFile } from "../docs/repositoryFiles.ts";
import { INVENTED_PROMISE } from "./invented/inventedScenarios.ts";
import { LONG_FAULTS } from "./planted/longFaults.ts";
import { SOAK_FAULTS } from "./planted/soakFaults.ts";
import { PROMISES, type PromiseName, RUN_PROMISES } from "./promises.ts";
import { SCENARIOS } from "./scenarios/scenarios.ts";

const [, truth = ""] = readRepositoryFile("docs/claims.md").split("\n## ");
const claims = [...truth.matchAll(/^\| (?!Claim)([^|]+) \|/gm)].map(([, claim]) => claim);
const scenarios: ReadonlySet<PromiseName> = new Set([
  ...SCENARIOS.map(({ promise }) => promise),
  INVENTED_PROMISE,
  ...Object.values(RUN_PROMISES).flat(),
]);
const faults = [...Object.values(SOAK_FAULTS), ...Object.values(LONG_FAULTS)];
const found: ReadonlySet<PromiseName | undefined> = new Set(faults.map(({ promise }) => promise));

test("the promises are the claims on truth, word for word", () => {
  assert.deepEqual(Object.values(PROMISES), claims);
});

for (const [name, sentence] of Object.entries(PROMISES)) {
  test(`a scenario or a long run, and a planted fault, show: ${sentence}`, () => {
    assert.ok(scenarios.has(name as PromiseName), "no scenario or long run");
    assert.ok(found.has(name as PromiseName), "no planted fault");
  });
}

test("scenarios name each planted fault of the soak, and no other", () => {
  const named = new Set(SCENARIOS.flatMap(({ finds = [] }) => finds));
  assert.deepEqual([...named].toSorted(), Object.keys(SOAK_FAULTS).toSorted());
});

test("the long runs that hold to promises exist", () => {
  const missing = Object.keys(RUN_PROMISES).filter((run) => !existsSync(`${ROOT}/test/long/${run}.ts`));
  assert.deepEqual(missing, []);
});
