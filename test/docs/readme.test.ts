import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readOptions } from "../../docs/configurationTable.ts";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";
import type { CacheStatus } from "../../src/core/rpcSource.ts";
import { formatCacheStatus } from "../../src/http/cacheStatus.ts";
import { table } from "../../src/methods/table.ts";

const ROOT = new URL("../../", import.meta.url);
const MAX_HELP_LINES = 40;
const MAX_HELP_COLUMNS = 100;

const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");
const README = read("README.md");
const PAGES = ["README.md", ...readdirSync(new URL("docs/", ROOT), "utf8").map((name) => `docs/${name}`)].filter(
  (path) => path.endsWith(".md"),
);

const found = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, part = ""]) => part);

test("every link and picture leads somewhere, also to the heading that it names", () => {
  for (const page of PAGES) {
    for (const link of found(read(page), /\]\(([^)]+)\)/g)) {
      const [path = "", heading] = link.split("#");
      const target = new URL(path, new URL(page, ROOT));
      assert.ok(existsSync(target), `${page}: ${link}`);
      if (heading === undefined) continue;
      const headings = found(readFileSync(target, "utf8"), /^#+ (.+)$/gm);
      assert.ok(
        headings.some(
          (text) =>
            text
              .toLowerCase()
              .replaceAll(/[^\w -]/g, "")
              .replaceAll(" ", "-") === heading,
        ),
        `${page}: ${link}`,
      );
    }
  }
});

test("every claim is held by a test, a bench or a long run that exists", () => {
  const claims = README.slice(README.indexOf("| | Held by |")).split("\n\n")[0]?.split("\n").slice(2) ?? [];
  assert.ok(claims.length >= 20, `${claims.length} claims`);
  for (const claim of claims) {
    const holder = claim.split("|").at(-2) ?? "";
    const files = [
      ...found(holder, /`(test\/[^`]+)`/g),
      ...found(holder, /bench `([^`]+)`/g).map((name) => `test/bench/${name}.ts`),
      ...found(holder, /long `([^`]+)`/g).map((name) => `test/long/${name}.ts`),
      ...(holder.includes("npm run test:vectors") ? ["test/vectors/run.ts"] : []),
    ];
    assert.notDeepEqual(files, [], claim);
    for (const file of files) assert.ok(existsSync(new URL(file, ROOT)), claim);
  }
});

test("the method table has every method once", () => {
  const rows = README.slice(README.indexOf("| Method | Kept |"), README.indexOf("<!-- /generated -->"));
  assert.deepEqual(found(rows, /`(\w+_\w+)`(?=[,| ])(?! of)/g).toSorted(), table.map(({ name }) => name).toSorted());
});

test("every YAML example is a configuration that would start", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-docs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "forebay.yaml");
  const environment = { KEY: "k", KEY_A: "a", KEY_B: "b", PROVIDER_KEY: "p" };
  let examples = 0;
  for (const page of PAGES) {
    for (const yaml of found(read(page), /```yaml\n(.*?)```/gs).filter((text) => /^chains:/m.test(text))) {
      writeFileSync(file, yaml);
      readConfig(readArguments(["--config", file], environment), environment);
      examples += 1;
    }
  }
  assert.ok(examples >= 7, `${examples} examples`);
});

test("every command line is one that would start", () => {
  const lines = PAGES.flatMap((page) => found(read(page), /^(?:npx )?forebay (--.+)$/gm));
  assert.ok(lines.length >= 2);
  for (const line of lines) readConfig(readArguments(line.split(" "), {}), {});
});

test("the limits are the defaults", () => {
  const options = new Map(readOptions().map(({ path, fallback }) => [path, fallback]));
  const limits = [...README.matchAll(/`([\w.[\]]+)` \(([\d,]+)/g)];
  assert.ok(limits.length >= 10);
  for (const [, path = "", value = ""] of limits) {
    assert.equal(options.get(path), `\`${value.replaceAll(",", "")}\``, path);
  }
});

test("Cache-Status is told as it is sent", () => {
  const statuses: readonly (readonly CacheStatus[])[] = [
    [{ hit: "memory" }],
    [{ fwd: "miss", stored: true }],
    [{ fwd: "miss", collapsed: true }],
    [{ fwd: "method" }],
    [{ hit: "memory" }, { fwd: "miss" }],
  ];
  assert.deepEqual(found(README, /^\| `(forebay; [^`]+)`/gm), [
    ...statuses.map((list) => formatCacheStatus(list.map((status) => ({ status })))),
    formatCacheStatus([], 1),
  ]);
});

test("--help fits a screen, and names every option", () => {
  const { stdout } = spawnSync(process.execPath, [fileURLToPath(new URL("src/cli/bin.ts", ROOT)), "--help"], {
    encoding: "utf8",
  });
  const lines = stdout.trimEnd().split("\n");
  assert.ok(lines.length >= 10 && lines.length <= MAX_HELP_LINES, `${lines.length} lines`);
  for (const line of lines) assert.ok(line.length <= MAX_HELP_COLUMNS, line);
  const options = found(
    read("src/config/readConfig.ts").split("} as const;")[0] ?? "",
    /^ {2}"?([a-z-]+)"?: \{ type:/gm,
  );
  assert.ok(options.length >= 10);
  for (const option of options) assert.ok(stdout.includes(`--${option}`), option);
});
