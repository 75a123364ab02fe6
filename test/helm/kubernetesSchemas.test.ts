import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const CHART = fileURLToPath(new URL("../../helm/", import.meta.url));
const HELM = process.env.HELM ?? "helm";
/** The command of the package kubernetes-validate on PyPI, which contains the schemas of each version of Kubernetes. */
const VALIDATE = process.env.KUBERNETES_VALIDATE ?? "kubernetes-validate";
const VERSION = "1.31";
/** Kinds of other projects, of which Kubernetes has no schema. */
const OTHER_KINDS = ["HTTPRoute", "PrometheusRule", "ServiceMonitor"];

const lacking = [
  [HELM, "version"],
  [VALIDATE, "--version"],
].find(([command = "", argument = ""]) => spawnSync(command, [argument]).status !== 0)?.[0];
const skip = lacking !== undefined && `no ${lacking}`;

const render = (values: string): string => {
  const args = ["template", "release", "--kube-version", `${VERSION}.0`, "--values", `ci/${values}`, "."];
  const { status, stdout, stderr } = spawnSync(HELM, args, { cwd: CHART, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout;
};

/** Validates objects strictly: an unknown field is an error. */
const validate = (objects: string) => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-chart-"));
  const file = join(folder, "objects.yaml");
  writeFileSync(file, objects);
  const { status, stdout, stderr } = spawnSync(VALIDATE, ["--strict", "-k", VERSION, file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  const lines = `${stdout}${stderr}`.trim().split("\n");
  const without = lines.filter((line) => line.startsWith("WARN"));
  return { status, lines, without };
};

for (const values of readdirSync(join(CHART, "ci"))) {
  test(`${values}: every object fits the strict schema of Kubernetes`, { skip }, () => {
    const { status, lines, without } = validate(render(values));
    assert.equal(status, 0, lines.join("\n"));
    assert.ok(lines.length - without.length >= 8, lines.join("\n"));
    const unknown = without.filter((line) => !OTHER_KINDS.some((kind) => line.includes(`for kind ${kind} `)));
    assert.deepEqual(unknown, []);
  });
}

test("an unknown field of an object is refused", { skip }, () => {
  const wrong = render("one-chain-values.yaml").replace("imagePullPolicy:", "imagePullPolice:");
  const { status, lines } = validate(wrong);
  assert.notEqual(status, 0);
  assert.match(lines.join("\n"), /imagePullPolice/);
});
