import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const CHART = new URL("../../helm/", import.meta.url);
const HELM = process.env.HELM ?? "helm";
/** A helm that was built with Go's tools assumes a very old cluster, so that the version is set. */
export const CLUSTER = ["--kube-version", "1.31.0"];
export const hasHelm = spawnSync(HELM, ["version"]).status === 0;
/** `helm lint` has the flag since 3.15. */
export const LINT_CLUSTER = spawnSync(HELM, ["lint", "--help"], { encoding: "utf8" }).stdout?.includes("--kube-version")
  ? CLUSTER
  : [];

const spawnHelm = (args: readonly string[]) => spawnSync(HELM, args, { cwd: fileURLToPath(CHART), encoding: "utf8" });

/** Runs helm in the folder of the chart. Returns its output, and fails if helm does. */
export const runHelm = (...args: readonly string[]): string => {
  const { status, stdout, stderr } = spawnHelm(args);
  assert.equal(status, 0, `helm ${args.join(" ")}\n${stdout}${stderr}`);
  return stdout;
};

/** Renders the chart, and returns the error. Fails if helm accepts the values. */
export const refusalOf = (...args: readonly string[]): string => {
  const { status, stderr } = spawnHelm(["template", "release", ...CLUSTER, ...args, "."]);
  assert.notEqual(status, 0);
  return stderr;
};
