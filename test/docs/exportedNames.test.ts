import assert from "node:assert/strict";
import { test } from "node:test";
import { readRepositoryFile, repositoryFiles } from "./repositoryFiles.ts";

const EXPORT =
  /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type|enum) ([\w$]+)|^export const \{ ([\w$]+) \}/gm;

/** A constant and a type may share a name in one file: together they are one thing. */
const exportedNames = (source: string): ReadonlySet<string> =>
  new Set([...source.matchAll(EXPORT)].map(([, name, destructured]) => name ?? destructured ?? ""));

test("no name is exported by two files of src", () => {
  const filesByName = new Map<string, string[]>();
  for (const path of repositoryFiles().filter((file) => /^src\/.*\.ts$/.test(file))) {
    for (const name of exportedNames(readRepositoryFile(path))) {
      filesByName.set(name, [...(filesByName.get(name) ?? []), path]);
    }
  }
  assert.ok(filesByName.size > 1_500, `${filesByName.size} names`);
  assert.deepEqual(
    [...filesByName].filter(([, files]) => files.length > 1).map(([name, files]) => `${name}: ${files.join(", ")}`),
    [],
  );
});
