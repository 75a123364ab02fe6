import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readOptions } from "../../docs/configurationTable.ts";
import { readMetrics } from "../../docs/metricsTable.ts";
import { TABLES, withTable } from "../../docs/tables.ts";

test("the tables match the code (npm run generate)", () => {
  for (const { file, format } of TABLES) {
    const page = readFileSync(file, "utf8");
    assert.equal(page, withTable(page, format()), file.pathname);
  }
});

test("the table 'First look' names existing alerts", () => {
  const page = readFileSync(new URL("../../docs/alerts.md", import.meta.url), "utf8");
  const [rules = "", looks = ""] = page.split("## First look");
  for (const [alert] of looks.matchAll(/Forebay\w+/g)) {
    assert.ok(rules.includes(alert), alert);
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

test("a page without marks is rejected", () => {
  assert.throws(() => withTable("# Page\n", "| a |"), /has no <!-- generated/);
});
