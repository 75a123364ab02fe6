import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";
import { exitCodeOf, makeChart, makeImage } from "../../release.ts";
import { ROOT, readRepositoryFile } from "../docs/repositoryFiles.ts";

const createFolder = async (t: TestContext): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-release-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
};

/** Writes a program that notes its arguments, and fails with a text if they match. */
const createTool = async (folder: string, fails: string): Promise<string> => {
  const tool = join(folder, "tool");
  await writeFile(
    tool,
    `#!/bin/sh\necho "$*" >> "${folder}/calls"\ncase "$*" in ${fails}) echo "it broke" >&2; exit 3;; esac\n`,
  );
  await chmod(tool, 0o755);
  return tool;
};

const callsOf = (folder: string): readonly string[] => readFileSync(join(folder, "calls"), "utf8").trim().split("\n");

/** A port where nothing listens (discard). */
const NO_REGISTRY = "http://127.0.0.1:9";

test("without docker, Helm and a network, the package, its SBOM and its publication are made, and the rest is named", async (t) => {
  const folder = await createFolder(t);
  const missing = join(folder, "missing");
  const { status, stdout, stderr } = spawnSync(execPath, ["release.ts", join(folder, "release")], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, DOCKER: missing, HELM: missing, npm_config_registry: NO_REGISTRY },
  });
  assert.equal(status, 2, stdout + stderr);
  const { name, version } = JSON.parse(readRepositoryFile("package.json"));
  const tarball = join(folder, `release/package/${name}-${version}.tgz`);
  const bom = join(folder, `release/${name}-${version}.cdx.json`);
  assert.deepEqual(stdout.trim().split("\n"), [
    `made    package: ${tarball}`,
    `made    SBOM: ${bom}`,
    "made    npm publish --dry-run",
    `skipped image: ${missing} is not installed`,
    `skipped chart: ${missing} is not installed`,
    `made    checksums: ${join(folder, "release/SHA256SUMS")}`,
  ]);
  const sum = createHash("sha256").update(readFileSync(tarball)).digest("hex");
  assert.ok(
    readFileSync(join(folder, "release/SHA256SUMS"), "utf8").includes(`${sum}  package/${name}-${version}.tgz\n`),
  );

  const { bomFormat, metadata, components, dependencies } = JSON.parse(readFileSync(bom, "utf8"));
  assert.equal(bomFormat, "CycloneDX");
  assert.deepEqual([metadata.component.name, metadata.component.version], [name, version]);
  const names: readonly string[] = components.map((each: { name: string }) => each.name);
  const own = JSON.parse(readFileSync(join(folder, "release/package/package.json"), "utf8"));
  for (const dependency of [...Object.keys(own.dependencies), ...Object.keys(own.optionalDependencies)]) {
    assert.ok(names.includes(dependency), dependency);
  }
  assert.ok(!names.some((each) => each === "typescript" || each === "viem"), "no development tools");
  const refs = new Set(components.map((each: { "bom-ref": string }) => each["bom-ref"]));
  for (const { dependsOn } of dependencies) {
    assert.ok(dependsOn.every((ref: string) => refs.has(ref)));
  }
  assert.doesNotMatch(JSON.stringify([components, dependencies]), /node-linux-/);
});

test("the image is built for both kinds of processors, with an SBOM", async (t) => {
  const folder = await createFolder(t);
  const docker = await createTool(folder, "nothing");
  const part = makeImage(folder, { docker });
  assert.equal(part.outcome, "made");
  const build = callsOf(folder).at(-1) ?? "";
  assert.match(
    build,
    /^buildx build --platform=linux\/amd64,linux\/arm64 --sbom=true .*--output=type=oci,dest=\S+\.oci\.tar \.$/,
  );
});

test("docker without buildx, or without its daemon, is a reason to skip the image", async (t) => {
  for (const check of ["version", '"buildx version"']) {
    const folder = await createFolder(t);
    const docker = await createTool(folder, check);
    const reason = `${docker} ${check.replaceAll('"', "")} fails: it broke`;
    assert.deepEqual(makeImage(folder, { docker }), { name: "image", outcome: "skipped", reason });
  }
});

test("a build that fails is no part that is skipped", async (t) => {
  const folder = await createFolder(t);
  const tool = await createTool(folder, '"buildx build"*|package*');
  const parts = [makeImage(folder, { docker: tool }), makeChart(folder, { helm: tool })];
  assert.deepEqual(
    parts.map(({ outcome }) => outcome),
    ["failed", "failed"],
  );
  assert.deepEqual(
    [
      exitCodeOf([]),
      exitCodeOf([
        { name: "a", outcome: "made", files: [] },
        { name: "b", outcome: "skipped", reason: "" },
      ]),
      exitCodeOf([...parts, { name: "b", outcome: "skipped", reason: "" }]),
    ],
    [0, 2, 1],
  );
});

const hasHelm = spawnSync(process.env.HELM ?? "helm", ["version"]).status === 0;

test("helm packs the chart", { skip: !hasHelm && "no helm" }, async (t) => {
  const folder = await createFolder(t);
  const part = makeChart(folder, { helm: process.env.HELM ?? "helm" });
  assert.ok(part.outcome === "made");
  assert.ok(readFileSync(part.files[0] ?? "").length > 0);
});
