import assert from "node:assert/strict";
import { test } from "node:test";
import { PLANTED_PROXIES, plantedProxyOf } from "../world/proxies/plantedProxy.ts";
import type { ScoreReport } from "./score.ts";
import { runTruth } from "./truthRun.ts";
import { countFaults } from "./truthTable.ts";

const SECONDS = 4;
/** The value that a planted fault raises. The fault of `highestHead` needs a node with an invented head. */
const FOUND: Readonly<Record<string, { readonly scenario?: string; readonly count: (score: ScoreReport) => number }>> =
  {
    oldState: { count: ({ wrong }) => wrong.otherBlock ?? 0 },
    lostLog: { count: ({ wrong }) => wrong.missingLogs ?? 0 },
    nullReceipt: { count: ({ wrong }) => wrong.nullForExisting ?? 0 },
    stepBack: { count: ({ stepsBack }) => stepsBack.latest },
    highestHead: { scenario: "lies: invented head", count: ({ wrong }) => wrong.forged ?? 0 },
  };

const runPlanted = (name: string, scenario: string) => {
  const proxy = plantedProxyOf(name);
  assert.ok(proxy);
  return runTruth({ proxy, seconds: SECONDS, seed: 1, scenario });
};

test("each planted fault but none is expected to be found", () => {
  assert.deepEqual(
    PLANTED_PROXIES.filter((name) => !(name in FOUND)),
    ["nothing"],
  );
});

for (const [name, { scenario = "honest", count }] of Object.entries(FOUND)) {
  test(`the truth suite finds the planted fault ${name}`, async () => {
    const report = await runPlanted(name, scenario);
    const score = report.rows[0]?.score;
    assert.ok(score !== undefined && count(score) > 0, JSON.stringify(report));
  });
}

for (const scenario of ["honest", "reorganisations"]) {
  test(`a proxy that forwards to one honest node has no fault, scenario ${scenario}`, async () => {
    const report = await runPlanted("nothing", scenario);
    assert.equal(countFaults(report), 0, JSON.stringify(report));
    assert.ok((report.rows[0]?.score?.answers ?? 0) > 0);
  });
}
