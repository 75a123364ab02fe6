import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../support/clients/until.ts";
import { startCommand } from "../support/servers/command.ts";
import { readAccounts } from "./faults/nodeFaults.ts";
import { ABSENT, fireAlerts } from "./fireAlerts.ts";
import { startLiveNode } from "./liveNode.ts";
import { startPrometheus } from "./prometheusServer.ts";
import { scaleRules } from "./scaledRules.ts";
import { watchAlerts } from "./watchAlerts.ts";

// In one file, so that they run one after the other: the load of one test would raise alerts of another.
const GRAFANA = fileURLToPath(new URL("../../grafana/", import.meta.url));
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;
const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;

/** Windows and `for` of at most 15 s, and "yesterday" is 30 s ago. */
const SCALE = { divisor: 20, maxSeconds: 15, maxOffsetSeconds: 30 };
const LIMIT_MS = 240_000;

const QUIET_SCALE = 20;
/** Eight minutes of the real rules: alerts on a head that has stopped need one of five minutes ago. */
const QUIET_SECONDS = 480 / QUIET_SCALE;

test("promtool: each alert fires and clears", { skip: !hasPromtool && "no promtool" }, () => {
  const options = { cwd: GRAFANA, encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", "alerts.test.yaml"], options);
  assert.equal(status, 0, stdout + stderr);
});

test("each alert fires on its real fault", { skip: !hasPrometheus && "no prometheus" }, async (t) => {
  assert.deepEqual(await fireAlerts(t, { ...SCALE, limitMs: LIMIT_MS }), [], "these alerts did not fire");
});

test(`${ABSENT} fires when the only process has ended`, { skip: !hasPrometheus && "no prometheus" }, async (t) => {
  const node = await startLiveNode(t);
  const { url, opsUrl, end } = await startCommand(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url }] }],
  });
  const prometheus = await startPrometheus(new URL(opsUrl).host, scaleRules(SCALE));
  t.after(() => prometheus.close());
  await readAccounts(url);
  await until(async () => (await prometheus.query("up == 1")).length === 1, "the process is scraped");
  await end();
  await until(async () => (await prometheus.firing()).has(ABSENT), ABSENT);
});

test("processes of each kind without a fault raise no alert, not even a pending one", {
  skip: !hasPrometheus && "no prometheus",
}, async (t) => {
  assert.deepEqual(await watchAlerts(t, { divisor: QUIET_SCALE, seconds: QUIET_SECONDS }), []);
});
