import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readOptions } from "../../docs/configurationTable.ts";
import { LAYERS } from "../../layers.ts";
import type { CacheStatus } from "../../src/core/rpcSource.ts";
import { formatCacheStatus } from "../../src/http/cacheStatus.ts";
import { table } from "../../src/methods/table.ts";
import { ROOT, readRepositoryFile } from "./repositoryFiles.ts";

const capturesOf = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, part = ""]) => part);

const rowsAfter = (page: string, heading: string): readonly string[] =>
  page
    .slice(page.indexOf(heading))
    .split("\n\n")[0]
    ?.split("\n")
    .slice(2)
    .filter((row) => row.startsWith("|")) ?? [];

/** The rows of both tables of docs/claims.md. */
const CLAIMS = readRepositoryFile("docs/claims.md")
  .split("\n## ")
  .flatMap((section) => rowsAfter(section, "| Claim | Verified by |"));

const assertExists = (path: string, message: string): void => assert.ok(existsSync(join(ROOT, path)), message);

test("every claim is verified by a test, a bench or a long run that exists", () => {
  assert.ok(CLAIMS.length >= 50, `${CLAIMS.length} claims`);
  for (const claim of CLAIMS) {
    const evidence = claim.split("|").at(-2) ?? "";
    const files = [
      ...capturesOf(evidence, /`(test\/[^`]+)`/g),
      ...capturesOf(evidence, /bench `([^`]+)`/g).map((name) => `test/bench/${name}.ts`),
      ...capturesOf(evidence, /long `([^`]+)`/g).map((name) => `test/long/${name}.ts`),
      ...(evidence.includes("npm run test:vectors") ? ["test/vectors/run.ts"] : []),
    ];
    assert.notDeepEqual(files, [], claim);
    for (const file of files) {
      assertExists(file, claim);
    }
  }
});

test("every claim that tests verify has one in `npm test`", () => {
  for (const claim of CLAIMS) {
    const tests = capturesOf(claim, /`(test\/[^`]+\.test\.ts)`/g);
    assert.ok(tests.length === 0 || tests.some((file) => !file.endsWith(".slow.test.ts")), claim);
  }
});

const FIGURES = "| | Measured | Reproduce |";

test("every figure for clients has a bench that measures it, and the README has five of them at most", () => {
  const figures = rowsAfter(readRepositoryFile("docs/performance.md"), FIGURES);
  const chosen = rowsAfter(readRepositoryFile("README.md"), FIGURES);
  assert.ok(chosen.length >= 3 && chosen.length <= 5, `${chosen.length} figures`);
  assert.deepEqual(
    chosen.filter((figure) => !figures.includes(figure)),
    [],
  );
  for (const figure of figures) {
    const [name = ""] = capturesOf(figure, /`npm run bench -- ([\w-]+)(?: --short)?` \|$/g);
    assertExists(`test/bench/${name}.ts`, figure);
  }
});

test("every bench is named in the claims, the README or the page on performance", () => {
  const pages = ["README.md", "docs/claims.md", "docs/performance.md"].map(readRepositoryFile).join("\n");
  const benches = readdirSync(join(ROOT, "test/bench")).filter((file) => file.endsWith(".ts") && file !== "run.ts");
  const unnamed = benches
    .map((file) => file.slice(0, -".ts".length))
    .filter((name) => !new RegExp(`[\`\\s]${name}[\`\\s]`).test(pages));
  assert.deepEqual(unnamed, []);
});

test("the method table has every method once", () => {
  const [, rows = ""] = readRepositoryFile("docs/methods.md").split("<!-- generated: npm run generate -->");
  const [generated = ""] = rows.split("<!-- /generated -->");
  assert.deepEqual(
    capturesOf(generated, /`(\w+_\w+)`(?=[,| ])(?! of)/g).toSorted(),
    table.map(({ name }) => name).toSorted(),
  );
});

test("the documented limits are the defaults", () => {
  const options = new Map(readOptions().map(({ path, fallback }) => [path, fallback]));
  const limits = [...readRepositoryFile("docs/limits.md").matchAll(/`([\w.[\]]+)` \(([\d,]+)/g)];
  assert.ok(limits.length >= 10);
  for (const [, path = "", value = ""] of limits) {
    assert.equal(options.get(path), `\`${value.replaceAll(",", "")}\``, path);
  }
});

test("Cache-Status is documented as it is sent", () => {
  const statuses: readonly (readonly CacheStatus[])[] = [
    [{ hit: "memory" }],
    [{ fwd: "miss", stored: true }],
    [{ fwd: "miss" }],
    [{ fwd: "miss", collapsed: true }],
    [{ fwd: "method" }],
    [{ hit: "memory" }, { fwd: "miss" }],
  ];
  assert.deepEqual(capturesOf(readRepositoryFile("docs/answers.md"), /^\| `(forebay; [^`]+)`/gm), [
    ...statuses.map((list) => formatCacheStatus(list.map((status) => ({ status })))),
    formatCacheStatus([], 1),
  ]);
});

test("the architecture lists the folders of src by import layers", () => {
  const rows = rowsAfter(readRepositoryFile("docs/architecture.md"), "| Folders on one line of `src` |");
  assert.deepEqual(
    rows.map((row) => capturesOf(row, /(?:\| |\. )`(\w+)`: /g)),
    LAYERS,
  );
  const folders = readdirSync(join(ROOT, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual(LAYERS.flat().toSorted(), folders.map(({ name }) => name).toSorted());
});
