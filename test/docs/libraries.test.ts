import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { forbiddenFolders, LAYERS, LIBRARIES } from "../../layers.ts";
import { ROOT, readRepositoryFile } from "./repositoryFiles.ts";

const run = promisify(execFile);
/** A README of one screen. */
const MAX_LINES = 60;

/** Finds the paths of `src` that files of a folder, or one file, import, also for their types. */
const importsOf = (path: string): readonly string[] => {
  const source = join(ROOT, "src");
  const files = path.endsWith(".ts")
    ? [path]
    : readdirSync(join(source, path), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .map((name) => join(path, name));
  return files.flatMap((file) =>
    [...readFileSync(join(source, file), "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)].map(([, to = ""]) =>
      join(file, "..", to),
    ),
  );
};

for (const [library, allowed] of Object.entries(LIBRARIES)) {
  test(`${library} imports only what layers.ts allows it`, () => {
    const all = [library, ...allowed];
    const isAllowed = (path: string) => all.some((each) => path === each || path.startsWith(`${each}/`));
    assert.deepEqual(
      all.flatMap(importsOf).filter((path) => !isAllowed(path)),
      [],
    );
    const folders = LAYERS.flat().filter((folder) => folder !== library && !allowed.includes(folder));
    assert.deepEqual(forbiddenFolders(library).toSorted(), folders.toSorted());
  });

  test(`the example in the README of ${library} prints what it says`, async () => {
    const text = readRepositoryFile(join("src", library, "README.md"));
    assert.ok(text.split("\n").length <= MAX_LINES, "one screen");
    const [, example = ""] = /```ts\n(.*?)```/s.exec(text) ?? [];
    const printed = [...example.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, expected]) => expected);
    assert.ok(printed.length > 0);
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", example], {
      cwd: join(ROOT, "src", library),
    });
    assert.deepEqual(stdout.trim().split("\n"), printed);
  });
}
