import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { until } from "../support/clients/until.ts";
import { startProcesses } from "../support/servers/processes.ts";
import { readAccounts } from "./faults/nodeFaults.ts";
import { FAULTS, fireAlerts } from "./fireAlerts.ts";
import { startLiveNode } from "./liveNode.ts";
import { startPrometheus } from "./prometheusServer.ts";
import { RULES, scaleRules } from "./scaledRules.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;

/** Fires if nothing is scraped: its fault is the end of all processes. */
const ABSENT = "ForebayAbsent";

/** Windows and `for` of at most 15 s, and "yesterday" is 30 s ago. */
const SCALE = { divisor: 20, maxSeconds: 15, maxOffsetSeconds: 30 };
const LIMIT_MS = 120_000;

test("every alert has a fault in test/grafana/faults that fires it", () => {
  const covered = new Set([ABSENT, ...Object.values(FAULTS).flatMap(({ alerts }) => alerts)]);
  const names = RULES.map(({ alert }) => alert);
  assert.deepEqual(
    names.filter((name) => !covered.has(name)),
    [],
    "add a real fault for these alerts to a file of test/grafana/faults",
  );
  assert.deepEqual(
    [...covered].filter((name) => !names.includes(name)),
    [],
    "these alerts do not exist",
  );
});

test("each alert fires on its real fault", { skip: !hasPrometheus && "no prometheus" }, async (t) => {
  assert.deepEqual(await fireAlerts(t, { ...SCALE, limitMs: LIMIT_MS }), [], "these alerts did not fire");
});

test(`${ABSENT} fires when the only process has ended`, { skip: !hasPrometheus && "no prometheus" }, async (t) => {
  const node = await startLiveNode(t);
  const { url, opsUrl, end } = await startProcesses(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url }] }],
    server: { processes: 1 },
  });
  const prometheus = await startPrometheus(new URL(opsUrl).host, scaleRules(SCALE));
  t.after(() => prometheus.close());
  await readAccounts(url);
  await until(async () => (await prometheus.query("up == 1")).length === 1, "the process is scraped");
  await end();
  await until(async () => (await prometheus.firing()).has(ABSENT), ABSENT);
});
