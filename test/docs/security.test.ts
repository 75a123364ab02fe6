import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT, readRepositoryFile } from "./repositoryFiles.ts";

const page = readRepositoryFile("SECURITY.md");

/** The cells of the rows of a table, by its first heading. */
const rowsOf = (heading: string): readonly (readonly string[])[] => {
  const [table = ""] = page.slice(page.indexOf(`| ${heading} |`)).split("\n\n");
  return table
    .split("\n")
    .slice(2)
    .map((row) =>
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
};

/** The names of tests in a cell, with the file that stands before them. */
const testsIn = (cell: string): readonly (readonly [file: string, name: string])[] => {
  const texts = [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text);
  return texts.flatMap((text, at) => {
    const file = texts.slice(0, at).findLast((before) => before.startsWith("test/"));
    return text.startsWith("test/") || file === undefined ? [] : [[file, text] as const];
  });
};

test("every test file that SECURITY.md names exists", () => {
  const files = [...page.matchAll(/`(test\/[^`]+\.ts)`/g)].map(([, file = ""]) => file);
  assert.ok(files.length >= 15, `${files.length} files`);
  assert.deepEqual(
    files.filter((file) => !existsSync(join(ROOT, file))),
    [],
  );
});

test("every trust boundary has tests of `npm test`, by their names", () => {
  const rows = rowsOf("Boundary");
  const boundaries = new Set(rows.map(([boundary]) => boundary));
  for (const boundary of ["Disk", "Redis", "Known state", "Ops token", "Origins"]) {
    assert.ok(boundaries.has(boundary), boundary);
  }
  for (const [boundary = "", , tests = ""] of rows) {
    const named = testsIn(tests);
    assert.notDeepEqual(named, [], boundary);
    for (const [file, name] of named) {
      assert.ok(!file.endsWith(".slow.test.ts"), file);
      const source = readRepositoryFile(file);
      assert.ok(
        [`"${name}"`, `\`${name}\``].some((text) => source.includes(`test(${text}`)),
        `${file}: ${name}`,
      );
    }
  }
});
