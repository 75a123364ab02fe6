import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readOptions } from "../../docs/configurationTable.ts";
import { readMetrics } from "../../docs/metricsTable.ts";
import { TABLES } from "../../docs/tables.ts";
import { formatDashboard } from "../../grafana/dashboard.ts";
import { FILES } from "../../helm/generate.ts";

const GENERATED = [
  ...TABLES,
  ...[...FILES, { file: new URL("../../grafana/dashboard.json", import.meta.url), format: formatDashboard }].map(
    ({ file, format }) => ({ file, update: () => format() }),
  ),
];

test("every generated table and file is as the code has it (npm run generate)", () => {
  for (const { file, update } of GENERATED) {
    const text = readFileSync(file, "utf8");
    assert.equal(text, update(text), file.pathname);
  }
});

test("every option has a description", () => {
  const silent = readOptions().filter(({ meaning }) => meaning === "");
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
  );
});

test("metrics have one prefix, and counters end in _total", () => {
  for (const { name, kind, help } of readMetrics()) {
    assert.match(name, /^forebay_[a-z_]+$/);
    assert.equal(name.endsWith("_total"), kind === "counter", name);
    assert.notEqual(help, "", name);
  }
});
