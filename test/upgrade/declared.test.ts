import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { readMetrics } from "../../docs/metricsTable.ts";
import { valuesSchema } from "../../helm/values.ts";
import { ConfigError, readArguments, readConfig } from "../../src/config/readConfig.ts";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { CHART } from "../helm/helm.ts";
import { mergeValues } from "../helm/mergeValues.ts";
import { listBaseFiles, noBase, readBaseFile, removedIn, renamedIn } from "./baseTree.ts";

const skip = noBase;
const CHANGELOG = readRepositoryFile("CHANGELOG.md");
const RENAMED = renamedIn(CHANGELOG);
const REMOVED = removedIn(CHANGELOG);
const nameNow = (old: string): string => RENAMED.get(old) ?? old;

/** Returns the faults of a configuration. */
const faultsOf = (file: string, environment: Readonly<Record<string, string>>): readonly string[] => {
  try {
    readConfig(readArguments(["--config", file], environment), environment);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.faults;
  }
};

test("a configuration in the documents of the base tree is still valid, or its errors say what is removed", {
  skip,
}, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-upgrade-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "forebay.yaml");
  const environment = { KEY: "k", KEY_A: "a", KEY_B: "b", PROVIDER_KEY: "p" };
  const pages = listBaseFiles("docs").filter((path) => path.endsWith(".md"));
  const examples = [...readBaseFile(...pages).matchAll(/```yaml\n(.*?)```/gs)]
    .map(([, yaml = ""]) => yaml)
    .filter((yaml) => /^chains:/m.test(yaml));
  assert.ok(examples.length >= 7, `${examples.length} examples`);
  const faults = examples.map((yaml) => {
    writeFileSync(file, yaml);
    return faultsOf(file, environment);
  });
  assert.ok(faults.filter(({ length }) => length === 0).length >= 5, "most examples are valid");
  assert.deepEqual(
    faults.flat().filter((fault) => !/: \w+ is removed: ./.test(fault)),
    [],
  );
});

test("the values of the base tree's chart fit the present schema", { skip }, () => {
  const defaults: unknown = parse(readFileSync(new URL("values.yaml", CHART), "utf8"));
  const files = listBaseFiles("helm/ci");
  assert.ok(files.length >= 4);
  for (const path of files) {
    const own: unknown = parse(readBaseFile(path));
    const base = mergeValues(parse(readBaseFile("helm/values.yaml")), own);
    valuesSchema.parse(mergeValues(defaults, own));
    valuesSchema.parse(mergeValues(defaults, base));
  }
});

/** A row of docs/metrics.md. */
const METRIC_ROW = /^\| `(forebay_\w+)` \| (\w+) \| ([^|]*) \|/gm;

test("every metric of the base tree has its kind and its labels, or the changelog says where it is", { skip }, () => {
  const now = new Map(readMetrics().map((metric) => [metric.name, metric]));
  const rows = [...readBaseFile("docs/metrics.md").matchAll(METRIC_ROW)];
  assert.ok(rows.length >= 100, `${rows.length} metrics`);
  for (const [, old = "", kind, labels = ""] of rows.filter(([, name = ""]) => !REMOVED.has(name))) {
    const metric = now.get(nameNow(old));
    assert.ok(metric, `${old} is gone, and in neither table of the changelog`);
    assert.equal(metric.kind, kind, old);
    const gone = [...labels.matchAll(/`(\w+)`/g)].filter(([, label = ""]) => !metric.labels.includes(label));
    assert.deepEqual(gone, [], old);
  }
});

test("panels and alerts of the base tree query only metrics that exist, or that the changelog names as removed", {
  skip,
}, () => {
  const now = new Set(readMetrics().map(({ name }) => name));
  const queries = readBaseFile("grafana/dashboard.json", "grafana/alerts.yaml");
  const names = new Set([...queries.matchAll(/\bforebay_[a-z_]+[a-z]\b/g)].map(([name]) => name));
  const isKnown = (name: string) =>
    [name, name.replace(/_(?:bucket|sum|count)$/, "")].some((one) => now.has(nameNow(one)) || REMOVED.has(one));
  assert.ok(names.size >= 50, `${names.size} names`);
  assert.deepEqual(
    [...names].filter((name) => !isKnown(name)),
    [],
  );
});

test("every alert of the base tree has a rule, or the changelog says where it is", { skip }, () => {
  const alertsOf = (text: string) => [...text.matchAll(/alert: (\w+)/g)].map(([, name = ""]) => name);
  const now = alertsOf(readRepositoryFile("grafana/alerts.yaml"));
  const base = alertsOf(readBaseFile("grafana/alerts.yaml"));
  assert.ok(base.length >= 15);
  assert.deepEqual(
    base.filter((name) => !now.includes(nameNow(name)) && !REMOVED.has(name)),
    [],
  );
});

test("the tables Renamed and Removed of the changelog are read", () => {
  const text =
    "| alert | `ForebayA` | `ForebayB` |\n| metric | `forebay_a_total` | `forebay_b_total` |\n| header | `a` | `b` |";
  assert.deepEqual(
    [...renamedIn(text)],
    [
      ["ForebayA", "ForebayB"],
      ["forebay_a_total", "forebay_b_total"],
    ],
  );
  assert.deepEqual([...removedIn("| metric | `forebay_c_total` | |\n| option | `a.b` | c |")], ["forebay_c_total"]);
});
