import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { formatDashboard } from "../../grafana/dashboard.ts";
import { ROWS } from "../../grafana/rows.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { faultsOf, registeredSeries } from "./expressions.ts";

const PANELS = ROWS.flatMap(({ title: row, panels }) => panels.map((panel) => ({ row, ...panel })));
const { registry } = createTelemetry({ level: "silent" });
const SERIES = registeredSeries(registry);

test("dashboard.json equals the output of dashboard.ts (npm run generate)", () => {
  assert.equal(readFileSync(new URL("../../grafana/dashboard.json", import.meta.url), "utf8"), formatDashboard());
});

test("the dashboard has these rows, in the order of a request", () => {
  assert.deepEqual(
    ROWS.map(({ title }) => title),
    ["Requests", "Cache", "Logs", "Upstream", "Heads", "Pending", "Simulation", "State", "Subscriptions", "Process"],
  );
});

test("every expression names metrics and labels that the code registers", () => {
  const faults = PANELS.flatMap(({ row, title, queries }) =>
    queries.flatMap(({ expr }) => faultsOf(expr, SERIES).map((fault) => `${row} / ${title}: ${fault}`)),
  );
  assert.deepEqual(faults, []);
});

test("the expression of each query preserves every label of its legend", () => {
  for (const { title, queries } of PANELS) {
    for (const { expr, legend } of queries) {
      for (const [, label = ""] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
        assert.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), `${title}: ${label}`);
      }
    }
  }
});

test("every metric is on a panel", () => {
  const text = PANELS.flatMap(({ queries }) => queries.map(({ expr }) => expr)).join("\n");
  const missing = registry
    .getMetricsAsArray()
    .map(({ name }) => name)
    .filter((name) => !new RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(text));
  assert.deepEqual(missing, []);
});

test("titles differ within a row, and every panel has a description", () => {
  for (const { title, panels } of ROWS) {
    assert.equal(new Set(panels.map((panel) => panel.title)).size, panels.length, title);
    for (const { description } of panels) {
      assert.match(description, /\.$/);
    }
  }
});

test("a wrong name or label is found", () => {
  assert.deepEqual(faultsOf("rate(forebay_nothing_total[5m])", SERIES), ["unknown metric forebay_nothing_total"]);
  assert.deepEqual(faultsOf("sum by (node) (forebay_head)", SERIES), ["not every metric has the label node"]);
  assert.deepEqual(faultsOf('forebay_head{node="a"}', SERIES), ["forebay_head has no label node"]);
  assert.deepEqual(faultsOf("forebay_request_seconds", SERIES), ["unknown metric forebay_request_seconds"]);
});
