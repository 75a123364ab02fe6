import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { FILES } from "../../helm/generate.ts";
import { ROOT, readRepositoryFile, repositoryFiles } from "./repositoryFiles.ts";

const workflow = z.looseObject({
  jobs: z.record(z.string(), z.looseObject({ steps: z.array(z.looseObject({ run: z.string().optional() })) })),
});
const issueTemplate = z.looseObject({
  name: z.string(),
  description: z.string(),
  body: z.array(z.looseObject({ type: z.string() })).min(1),
});

test("the workflow runs .ci/run", () => {
  const { jobs } = workflow.parse(parse(readRepositoryFile(".github/workflows/ci.yml")));
  const commands = Object.values(jobs).flatMap(({ steps }) => steps.map(({ run }) => run));
  assert.ok(commands.includes(".ci/run"));
});

test("the issue templates have the fields that GitHub requires", () => {
  const templates = repositoryFiles().filter((path) => /^\.github\/ISSUE_TEMPLATE\/(?!config)/.test(path));
  assert.ok(templates.length >= 2);
  for (const path of templates) {
    issueTemplate.parse(parse(readRepositoryFile(path)));
  }
});

test("every file that is generated as a whole is marked for reviews", () => {
  const marked = readRepositoryFile(".gitattributes")
    .split("\n")
    .filter((line) => line.endsWith(" linguist-generated"))
    .map((line) => (line.split(" ")[0] ?? "").replace("**", ""));
  const generated = [...FILES.map(({ file }) => file.pathname.slice(ROOT.length)), "grafana/dashboard.json"];
  for (const path of generated) {
    assert.ok(
      marked.some((prefix) => path.startsWith(prefix)),
      path,
    );
  }
});
