import assert from "node:assert/strict";
import { test } from "node:test";
import { readOptions } from "../../docs/configurationTable.ts";
import { readMetrics } from "../../docs/metricsTable.ts";
import { documentPaths, readRepositoryFile } from "./repositoryFiles.ts";

/** The changelog names what was removed. */
const PAGES = documentPaths().filter((path) => path !== "CHANGELOG.md" && !path.startsWith(".github/"));

const HISTOGRAM_SUFFIX = /_(?:bucket|count|sum)$/;
const OPTION = /`((?:chains\[\]|cache|server|access|log)\.[\w[\].]+)`/g;
const METRIC = /\bforebay_[a-z_]+[a-z]\b(?!\*)/g;

/** Reads a page without the column of options of another proxy. */
const readPage = (page: string): string => {
  const text = readRepositoryFile(page);
  return page === "docs/from-erpc.md" ? text.replaceAll(/^\| `[^|]*\|/gm, "|") : text;
};

const unknownNames = (pattern: RegExp, isKnown: (name: string) => boolean) => {
  let count = 0;
  const unknown = PAGES.flatMap((page) =>
    [...readPage(page).matchAll(pattern)].flatMap(([whole, name = whole]) => {
      count += 1;
      return isKnown(name) ? [] : [`${page}: ${name}`];
    }),
  );
  return { count, unknown };
};

test("every option that a document names exists", () => {
  const paths = readOptions().map(({ path }) => path);
  const { count, unknown } = unknownNames(OPTION, (name) =>
    paths.some((path) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[]`)),
  );
  assert.deepEqual(unknown, []);
  assert.ok(count > 100, `${count} names`);
});

test("every metric that a document names exists", () => {
  const metrics = new Set(readMetrics().map(({ name }) => name));
  const { count, unknown } = unknownNames(
    METRIC,
    (name) => metrics.has(name) || metrics.has(name.replace(HISTOGRAM_SUFFIX, "")),
  );
  assert.deepEqual(unknown, []);
  assert.ok(count > 100, `${count} names`);
});
