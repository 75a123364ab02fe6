import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";
import { rulesFile } from "../../grafana/rulesFile.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { faultsOf, registeredSeries } from "./expressions.ts";
import { ABSENT, FAULTS } from "./fireAlerts.ts";

const GRAFANA = new URL("../../grafana/", import.meta.url);

const testsFile = z.looseObject({ tests: z.array(z.looseObject({ name: z.string() })) });

const read = (name: string): unknown => parse(readFileSync(new URL(name, GRAFANA), "utf8"));
const RULES = rulesFile.parse(read("alerts.yaml")).groups.flatMap(({ rules }) => rules);

test("every alert's expression names metrics and labels that the code registers", () => {
  const series = registeredSeries(createTelemetry({ level: "silent" }).registry);
  const faults = RULES.flatMap(({ alert, expr }) => faultsOf(expr, series).map((fault) => `${alert}: ${fault}`));
  assert.deepEqual(faults, []);
});

test("every alert has a test that it fires and clears", () => {
  const { tests } = testsFile.parse(read("alerts.test.yaml"));
  assert.deepEqual(
    tests.map(({ name }) => name),
    RULES.map(({ alert }) => alert),
  );
});

/** An absolute URL. The chart has the same default. */
const RUNBOOK_BASE = z
  .object({ prometheusRule: z.object({ runbookBase: z.url({ protocol: /^https$/ }) }) })
  .parse(parse(readFileSync(new URL("../helm/values.yaml", GRAFANA), "utf8"))).prometheusRule.runbookBase;

test("every alert names its section of the runbook, which says where to look and the remedy", () => {
  const runbook = readFileSync(new URL("../docs/runbook.md", GRAFANA), "utf8");
  const sections = new Map(
    runbook
      .split(/^### /m)
      .slice(1)
      .map((section) => [section.split("\n", 1)[0], section]),
  );
  assert.deepEqual(
    [...sections.keys()],
    RULES.map(({ alert }) => alert),
  );
  for (const { alert, annotations } of RULES) {
    assert.equal(annotations.runbook_url, `${RUNBOOK_BASE}docs/runbook.md#${alert.toLowerCase()}`);
    assert.match(sections.get(alert) ?? "", /^- First: .+\n- Then: .+$/m);
  }
});

const AGGREGATION = /\b(?:by|on) \(([^)]*)\)/g;

test("no alert sums over environments", () => {
  for (const { alert, expr } of RULES) {
    for (const [, labels = ""] of expr.matchAll(AGGREGATION)) {
      assert.match(labels, /\bnamespace, job\b/, alert);
    }
    assert.doesNotMatch(expr, /\b(?:sum|min|max|avg|count) ?\((?!.*\) by)/, alert);
  }
});

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

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

test("promtool: the rules are valid", { skip: !hasPromtool && "no promtool" }, () => {
  const options = { cwd: fileURLToPath(GRAFANA), encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", "alerts.yaml"], options);
  assert.equal(status, 0, stdout + stderr);
});
