import assert from "node:assert/strict";
import { test } from "node:test";
import { readRepositoryFile, repositoryFiles } from "./repositoryFiles.ts";

/** The picture's lines: an arrow, a name at its depth, and a note. */
const LINE = /^([│▼ ]*)(\w*)(?: {2,}(.*))?$/;
/** A word of a note with a capital inside is a name too. */
const NAME = /\b\w*[a-z][A-Z]\w*\b/g;
/** Names of others. */
const OTHERS = new Set(["WebSocket"]);

/** The text of the file that exports a name. */
const exported = new Map(
  repositoryFiles()
    .filter((path) => /^src\/.*\.ts$/.test(path))
    .map((path) => readRepositoryFile(path))
    .flatMap((text) =>
      [...text.matchAll(/^export (?:async |abstract )*\w+\*? (\w+)/gm)].map(([, name = ""]) => [name, text] as const),
    ),
);

interface PictureLine {
  readonly depth: number;
  readonly name: string;
  readonly note: string;
}

const readPicture = (heading: string): readonly PictureLine[] => {
  const [, section = ""] = readRepositoryFile("docs/architecture.md").split(`\n## ${heading}\n`);
  const [, picture = ""] = section.split("```");
  return picture
    .trim()
    .split("\n")
    .map((line) => {
      const [, { length: depth } = "", name = "", note = ""] = LINE.exec(line) ?? assert.fail(`no name: ${line}`);
      return { depth, name, note };
    });
};

/** Whether a text has the name, or a variable of that name, which begins with a lowercase letter. */
const hasName = (text: string, name: string): boolean =>
  new RegExp(`\\b(?:${name}|${name.charAt(0).toLowerCase()}${name.slice(1)})\\b`).test(text);

for (const [heading, minNames, minEdges] of [
  ["A request", 30, 30],
  ["The feed", 15, 10],
] as const) {
  test(`each name in the picture of "${heading}" is exported by src`, () => {
    const names = readPicture(heading).flatMap(({ name, note }) => [
      ...(name === "" ? [] : [name]),
      ...(note.match(NAME) ?? []),
    ]);
    assert.ok(names.length >= minNames, `${names.length} names`);
    assert.deepEqual(
      names.filter((name) => !exported.has(name) && !OTHERS.has(name)),
      [],
    );
  });

  test(`the file of a name in the picture of "${heading}" has the names that are indented below it`, () => {
    const lines = readPicture(heading);
    const edges = lines.flatMap(({ depth, name }, position) => {
      const parent = depth === 0 ? undefined : lines.slice(0, position).findLast((line) => line.depth < depth);
      return name === "" || parent === undefined ? [] : [{ parent: parent.name, child: name }];
    });
    assert.ok(edges.length >= minEdges, `${edges.length} edges`);
    assert.deepEqual(
      edges.filter(({ parent, child }) => !hasName(exported.get(parent) ?? "", child)),
      [],
    );
  });
}
