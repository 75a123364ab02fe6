import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { formatDashboard } from "../../grafana/dashboard.ts";
import { VARIABLES } from "../../grafana/queries.ts";
import { ROWS } from "../../grafana/rows.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { faultsOf, registeredSeries } from "./expressions.ts";

const dashboardFile = z.looseObject({
  templating: z.object({
    list: z.array(
      z.looseObject({
        name: z.string(),
        query: z.union([z.string(), z.object({ query: z.string(), refId: z.string() })]),
      }),
    ),
  }),
});

const PANELS = ROWS.flatMap(({ title: row, panels }) => panels.map((panel) => ({ row, ...panel })));
const { registry } = createTelemetry({ level: "silent" });
const SERIES = registeredSeries(registry);

test("the dashboard has these rows, in the order of a request", () => {
  assert.deepEqual(
    ROWS.map(({ title }) => title),
    [
      "Overview",
      "Requests",
      "Usage by key",
      "Payments",
      "Cache",
      "Logs",
      "Upstream",
      "Heads",
      "Pending",
      "Simulation",
      "State",
      "Subscriptions",
      "Process",
    ],
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

test("no panel sums nodes of different chains, which may have one name", () => {
  for (const { title, queries } of PANELS) {
    for (const { expr, legend } of queries) {
      for (const [, list = ""] of expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)) {
        const labels = list.split(", ");
        assert.ok(!labels.includes("node") || labels.includes("chain"), `${title}: ${expr}`);
      }
      assert.ok(!legend.includes("{{node}}") || legend.includes("{{chain}}"), `${title}: ${legend}`);
    }
  }
});

test("every query selects by namespace, job and instance, and by chain or node if its metric has them", () => {
  for (const { title, queries } of PANELS) {
    for (const { expr } of queries) {
      for (const [, name = "", matchers = ""] of expr.matchAll(/\b(forebay_\w+)\{([^}]*)\}/g)) {
        const labels = ["namespace", "job", "instance", ...(SERIES.get(name)?.has("chain") ? ["chain"] : [])];
        for (const label of labels) {
          assert.ok(matchers.includes(`${label}=~"$${label}"`), `${title}: ${name} without ${label}`);
        }
      }
    }
  }
});

test("the variables are chosen from the widest to the narrowest, and each lists a label that its series have", () => {
  const { templating } = dashboardFile.parse(JSON.parse(formatDashboard()));
  const queries = templating.list.flatMap(({ name, query }) => (typeof query === "string" ? [] : [{ name, ...query }]));
  assert.deepEqual(
    queries.map(({ name }) => name),
    [...VARIABLES],
  );
  for (const [index, { name, query }] of queries.entries()) {
    const [, series = "", label = ""] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? [];
    assert.equal(label, name);
    assert.deepEqual(faultsOf(`sum by (${label}) (${series})`, SERIES), []);
    const wider: readonly string[] = VARIABLES.slice(0, index);
    for (const [, used = ""] of series.matchAll(/"\$(\w+)"/g)) {
      assert.ok(wider.includes(used), query);
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

test("panels of today begin at midnight, and sum the time since in one value", () => {
  const today = z.looseObject({ title: z.string(), timeFrom: z.literal("now/d") });
  const query = z.looseObject({ expr: z.string(), instant: z.literal(true), range: z.literal(false) });
  const { panels } = z.object({ panels: z.array(z.looseObject({})) }).parse(JSON.parse(formatDashboard()));
  const found = panels.filter((panel) => "timeFrom" in panel).map((panel) => today.parse(panel));
  assert.deepEqual(
    found.map(({ title }) => title),
    ["Units today", "Saved today"],
  );
  for (const { targets } of found) {
    for (const { expr } of z.array(query).parse(targets)) {
      assert.match(expr, /increase\(.*\[\$__range\]\)/);
    }
  }
});

test("a wrong name or label is found", () => {
  assert.deepEqual(faultsOf("rate(forebay_nothing_total[5m])", SERIES), ["unknown metric forebay_nothing_total"]);
  assert.deepEqual(faultsOf("sum by (node) (forebay_head)", SERIES), ["not every metric has the label node"]);
  assert.deepEqual(faultsOf('forebay_head{node="a"}', SERIES), ["forebay_head has no label node"]);
  assert.deepEqual(faultsOf("forebay_request_seconds", SERIES), ["unknown metric forebay_request_seconds"]);
});
