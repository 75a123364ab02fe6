import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { until } from "../support/clients/until.ts";
import { startProcesses } from "../support/servers/processes.ts";
import type { AlertFault, FaultyProcess } from "./faults/alertFault.ts";
import { EXECUTION_FAULTS } from "./faults/executionFaults.ts";
import { FEED_FAULTS } from "./faults/feedFaults.ts";
import { NODE_FAULTS, readAccounts } from "./faults/nodeFaults.ts";
import { PROCESS_FAULTS } from "./faults/processFaults.ts";
import { startLiveNode } from "./liveNode.ts";
import { type PrometheusServer, startPrometheus } from "./prometheusServer.ts";
import { RULES, type Rule, scaleRules } from "./scaledRules.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;

/** Every alert is in one of these files, with a real fault that fires it. */
const FAULTS: Readonly<Record<string, AlertFault>> = {
  ...NODE_FAULTS,
  ...FEED_FAULTS,
  ...EXECUTION_FAULTS,
  ...PROCESS_FAULTS,
};

/** Fires if nothing is scraped: its fault is the end of all processes. */
const ABSENT = "ForebayAbsent";
const LIMIT_MS = 120_000;
const STEP_MS = 300;
/** The threshold of the default suits a process with 1.5 GB. The test fills less. */
const LESS_MEMORY = "3e8";

/** Windows and `for` of at most 15 s, and "yesterday" is 30 s ago. */
const SCALE = {
  divisor: 20,
  maxSeconds: 15,
  maxOffsetSeconds: 30,
  change: (rule: Rule): Rule =>
    rule.alert === "ForebayMemory" ? { ...rule, expr: rule.expr.replace("1.5e9", LESS_MEMORY) } : rule,
};

interface Started extends FaultyProcess {
  readonly fault: string;
  readonly alerts: readonly string[];
}

const startAll = (t: TestContext): Promise<readonly Started[]> =>
  Promise.all(
    Object.entries(FAULTS).map(async ([fault, { alerts, start }]) => ({ ...(await start(t)), fault, alerts })),
  );

/** The job of a fault in Prometheus. */
const jobOf = (fault: string): string => fault.replaceAll(/\W+/g, "-");

/** Calls the process again and again until its alerts have fired. Returns the alerts that did not. */
const awaitAlerts = async (process: Started, prometheus: PrometheusServer): Promise<readonly string[]> => {
  const { fault, alerts, begin, call } = process;
  let missing = alerts;
  const endMs = performance.now() + LIMIT_MS;
  const keepCalling = async (): Promise<void> => {
    while (call !== undefined && missing.length > 0 && performance.now() < endMs) {
      await call();
      await wait(STEP_MS);
    }
  };
  const calling = keepCalling();
  await begin?.();
  while (missing.length > 0 && performance.now() < endMs) {
    await wait(STEP_MS);
    // Some fire for seconds only, and this process is busy.
    const fired = await prometheus.query(
      `count by (alertname) (max_over_time(ALERTS{alertstate="firing",job="${jobOf(fault)}"}[10m]))`,
    );
    missing = missing.filter((alert) => !fired.some(({ labels }) => labels.alertname === alert));
  }
  await calling;
  return missing.map((alert) => `${alert}: ${fault}`);
};

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
  const started = await startAll(t);
  const targets = Object.fromEntries(started.map(({ fault, opsUrl }) => [jobOf(fault), new URL(opsUrl).host]));
  const prometheus = await startPrometheus(targets, scaleRules(SCALE));
  t.after(() => prometheus.close());
  await until(async () => (await prometheus.query("up == 1")).length === started.length, "all processes are scraped");

  const missing = await Promise.all(started.map((process) => awaitAlerts(process, prometheus)));
  assert.deepEqual(missing.flat(), [], "these alerts did not fire");
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
