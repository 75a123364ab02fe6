import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { LAYERS, readBiomeConfig, withImportRules } from "../../layers.ts";

const SOURCE = new URL("../../src/", import.meta.url);

test("every folder of src is in one layer, and src holds nothing but folders", () => {
  const entries = readdirSync(SOURCE, { withFileTypes: true });
  assert.deepEqual(entries.map(({ name }) => name).sort(), LAYERS.flat().toSorted());
  assert.ok(entries.every((entry) => entry.isDirectory()));
});

test("the linter's import rules are those of the layers", () => {
  const config = readBiomeConfig();
  assert.deepEqual(config, withImportRules(config));
});

test("no two files of src have the same name, but for the README of a library", () => {
  const names = readdirSync(SOURCE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "README.md")
    .map(({ name }) => name);
  assert.deepEqual(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  );
});
