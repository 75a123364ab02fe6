import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const GRAFANA = fileURLToPath(new URL("../../grafana/", import.meta.url));
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

test("promtool: each alert fires and clears", { skip: !hasPromtool && "no promtool" }, () => {
  const options = { cwd: GRAFANA, encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", "alerts.test.yaml"], options);
  assert.equal(status, 0, stdout + stderr);
});
