import assert from "node:assert/strict";
import { test } from "node:test";
import { readRepositoryFile, repositoryFiles } from "./repositoryFiles.ts";

/** The picture's lines: the arrows, a name, and a note. */
const LINE = /^[│├─▼ ]*(\w*)(?: {2,}(.*))?$/;
/** A word of a note with a capital inside is a name too. */
const NAME = /\b\w*[a-z][A-Z]\w*\b/g;
/** Names of others. */
const OTHERS = new Set(["WebSocket"]);

const exported = new Set(
  repositoryFiles()
    .filter((path) => /^src\/.*\.ts$/.test(path))
    .flatMap((path) => [...readRepositoryFile(path).matchAll(/^export (?:async |abstract )*\w+\*? (\w+)/gm)])
    .map(([, name = ""]) => name),
);

for (const [heading, minNames] of [
  ["A request", 30],
  ["The feed", 15],
] as const) {
  test(`each name in the picture of "${heading}" is exported by src`, () => {
    const [, section = ""] = readRepositoryFile("docs/architecture.md").split(`\n## ${heading}\n`);
    const [, picture = ""] = section.split("```");
    const lines = picture.trim().split("\n");
    const names = lines.flatMap((line) => {
      const [, name = "", note = ""] = LINE.exec(line) ?? assert.fail(`no name: ${line}`);
      return [...(name === "" ? [] : [name]), ...(note.match(NAME) ?? [])];
    });
    assert.ok(names.length >= minNames, `${names.length} names`);
    assert.deepEqual(
      names.filter((name) => !exported.has(name) && !OTHERS.has(name)),
      [],
    );
  });
}
