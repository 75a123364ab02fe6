import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { execPath } from "node:process";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { documentPaths, ROOT, readRepositoryFile } from "../docs/repositoryFiles.ts";

const manifest = z
  .object({ version: z.string(), scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readRepositoryFile("package.json")));

const releasesOf = (changelog: string): readonly string[] =>
  [...changelog.matchAll(/^## (\d+\.\d+\.\d+)(?: \(\d{4}-\d{2}-\d{2}\))$/gm)].map(([, version = ""]) => version);

test("lock file, chart, image and command have the version of the package", () => {
  const { version } = manifest;
  const lock = z
    .object({ version: z.string(), packages: z.looseObject({ "": z.object({ version: z.string() }) }) })
    .parse(JSON.parse(readRepositoryFile("package-lock.json")));
  const chart = z
    .object({ version: z.string(), appVersion: z.string() })
    .parse(parse(readRepositoryFile("helm/Chart.yaml")));
  assert.deepEqual([lock.version, lock.packages[""].version], [version, version]);
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  const printed = execFileSync(execPath, ["src/cli/bin.ts", "--version"], { cwd: ROOT, encoding: "utf8" });
  assert.equal(printed.trim(), version);
});

test("the changelog has the package's version as its newest release, or nothing is released", () => {
  const changelog = readRepositoryFile("CHANGELOG.md");
  const headings = [...changelog.matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => heading);
  const releases = releasesOf(changelog);
  assert.equal(headings.length, releases.length + (headings[0] === "Unreleased" ? 1 : 0), headings.join(", "));
  assert.ok(releases.length === 0 || releases[0] === manifest.version, `${releases[0]} is not ${manifest.version}`);
});

test("no document runs a package or an image by a name that forebay does not own", () => {
  const pages = [...documentPaths(), "compose.yaml", "helm/values.yaml", ".github/ISSUE_TEMPLATE/bug.yml"];
  const found = pages.filter((page) =>
    /npx (?:-y |--yes )?forebay|npm (?:i|install) (?:-g |--global )?forebay\b|docker (?:run|pull) (?:\S+ )*forebay\b|repository: forebay$/m.test(
      readRepositoryFile(page),
    ),
  );
  assert.deepEqual(found, []);
});

test("every npm script that README and the installation page run exists", () => {
  const used = ["README.md", "docs/operate.md"].flatMap((page) =>
    [...readRepositoryFile(page).matchAll(/npm (?:run (?:-s )?([\w:]+)|(start|test))\b/g)].map(
      ([, script, short]) => script ?? short ?? "",
    ),
  );
  assert.ok(used.length >= 8, used.join(", "));
  assert.deepEqual(
    used.filter((script) => !(script in manifest.scripts)),
    [],
  );
});

test("the release workflow publishes package, image and chart from a tag", () => {
  const workflow = z
    .object({
      on: z.object({ push: z.object({ tags: z.array(z.string()) }) }),
      jobs: z.record(z.string(), z.object({ needs: z.string().optional(), steps: z.array(z.looseObject({})) })),
    })
    .parse(parse(readRepositoryFile(".github/workflows/release.yml")));
  assert.deepEqual(workflow.on.push.tags, ["v*"]);
  assert.deepEqual(Object.keys(workflow.jobs), ["package", "image", "chart"]);
  const image = JSON.stringify(workflow.jobs.image);
  for (const part of ["linux/amd64,linux/arm64", '"sbom":true', '"provenance":"mode=max"']) {
    assert.ok(image.includes(part), part);
  }
});
