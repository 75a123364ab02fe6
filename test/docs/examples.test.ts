import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";
import { documentPaths, ROOT, readRepositoryFile } from "./repositoryFiles.ts";

const MAX_HELP_LINES = 40;
const MAX_HELP_COLUMNS = 100;

const capturesOf = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, part = ""]) => part);

test("every YAML example is a valid configuration", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-docs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "forebay.yaml");
  const environment = { KEY: "k", KEY_A: "a", KEY_B: "b", PROVIDER_KEY: "p" };
  let examples = 0;
  for (const page of documentPaths()) {
    for (const yaml of capturesOf(readRepositoryFile(page), /```yaml\n(.*?)```/gs)) {
      if (!/^chains:/m.test(yaml)) {
        continue;
      }
      writeFileSync(file, yaml);
      readConfig(readArguments(["--config", file], environment), environment);
      examples += 1;
    }
  }
  assert.ok(examples >= 7, `${examples} examples`);
});

test("every command line without a file is valid", () => {
  const lines = documentPaths()
    .flatMap((page) => capturesOf(readRepositoryFile(page), /^(?:npx )?forebay (--.+)$/gm))
    .filter((line) => !line.includes("--config"));
  assert.ok(lines.length >= 2);
  for (const line of lines) {
    readConfig(readArguments(line.split(" "), {}), {});
  }
});

test("--help fits a screen and lists every option", () => {
  const { stdout } = spawnSync(process.execPath, [join(ROOT, "src/cli/bin.ts"), "--help"], { encoding: "utf8" });
  const lines = stdout.trimEnd().split("\n");
  assert.ok(lines.length >= 10 && lines.length <= MAX_HELP_LINES, `${lines.length} lines`);
  for (const line of lines) {
    assert.ok(line.length <= MAX_HELP_COLUMNS, line);
  }
  const [declarations = ""] =
    /const OPTIONS = \{.*?\} as const;/s.exec(readRepositoryFile("src/config/readConfig.ts")) ?? [];
  const options = capturesOf(declarations, /^ {2}"?([a-z-]+)"?: \{ type:/gm);
  assert.ok(options.length >= 10);
  for (const option of options) {
    assert.ok(stdout.includes(`--${option}`), option);
  }
});
