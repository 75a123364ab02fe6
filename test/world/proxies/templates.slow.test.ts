import assert from "node:assert/strict";
import { test } from "node:test";
import { writeStandIn } from "../../bench/support/peers/standInProgram.ts";
import { runTruth } from "../../truth/truthRun.ts";
import { countFaults } from "../../truth/truthTable.ts";
import { proxyOf } from "./proxies.ts";
import { TRUTH_PROGRAMS } from "./templates.ts";

const SECONDS = 2;

test("each peer starts with its template, and its answers are judged", async (t) => {
  const binary = await writeStandIn(t);
  for (const { name } of TRUTH_PROGRAMS) {
    const proxy = proxyOf(name, binary);
    assert.ok(proxy);
    assert.equal(proxy.version, "v1.2.3", name);
    const report = await runTruth({ proxy, seconds: SECONDS, seed: 1, scenario: "honest" });
    assert.ok((report.rows[0]?.score?.answers ?? 0) > 0, name);
    assert.equal(countFaults(report), 0, JSON.stringify(report));
  }
});
