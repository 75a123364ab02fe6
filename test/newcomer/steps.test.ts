import assert from "node:assert/strict";
import { test } from "node:test";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { commandLines } from "./commandLines.ts";
import { STEPS } from "./steps.ts";

test("the newcomer knows each command line of README and of the installation page", () => {
  const lines = ["README.md", "docs/install.md"].flatMap((page) => commandLines(readRepositoryFile(page)));
  assert.deepEqual(
    STEPS.map(({ line }) => line),
    [...new Set(lines)],
  );
});
