import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT, readRepositoryFile } from "./repositoryFiles.ts";

const MIN_FAULTS = 25;
const EVIDENCE = /`(test\/[^`]+\.ts)`: ([^|]+) \|$/;

test("every fault names a test or a scenario that exists", () => {
  const [, faults = ""] = readRepositoryFile("docs/nodes.md").split("\n## Faults\n");
  const rows = faults.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| Fault |"));
  assert.ok(rows.length >= MIN_FAULTS, `${rows.length} faults`);
  for (const row of rows) {
    const [, file = "", name = ""] = EVIDENCE.exec(row) ?? [];
    assert.ok(existsSync(join(ROOT, file)) && file !== "", row);
    assert.ok(
      [`"${name}"`, `\`${name}\``].some((text) => readRepositoryFile(file).includes(text)),
      row,
    );
  }
});
