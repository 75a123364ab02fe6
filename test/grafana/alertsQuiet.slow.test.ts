import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { watchAlerts } from "./watchAlerts.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;
const SCALE = 20;
/** Eight minutes of the real rules: alerts on a head that has stopped need one of five minutes ago. */
const QUIET_SECONDS = 480 / SCALE;

test("processes of each kind without a fault raise no alert, not even a pending one", {
  skip: !hasPrometheus && "no prometheus",
}, async (t) => {
  const { raised, scrapes } = await watchAlerts(t, { divisor: SCALE, seconds: QUIET_SECONDS });
  assert.deepEqual(raised, []);
  assert.ok(scrapes >= QUIET_SECONDS, `${scrapes} scrapes`);
});
