import assert from "node:assert/strict";
import { test } from "node:test";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { commandLines, configurationsBelow } from "./commandLines.ts";
import { RECIPES, STEPS } from "./steps.ts";

test("the newcomer knows each command line of README and of the installation page", () => {
  const lines = ["README.md", "docs/operate.md"].flatMap((page) => commandLines(readRepositoryFile(page)));
  assert.deepEqual(
    STEPS.map(({ line }) => line),
    [...new Set(lines)],
  );
});

test("the newcomer finds the configurations of each recipe that it checks", () => {
  const counts = RECIPES.map(({ page, heading }) => configurationsBelow(readRepositoryFile(page), heading).length);
  assert.ok(
    counts.every((count) => count > 0),
    `${counts}`,
  );
});
