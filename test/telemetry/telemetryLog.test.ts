import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { execPath } from "node:process";
import { test } from "node:test";

const MODULE = new URL("../../src/telemetry/telemetry.ts", import.meta.url).href;

test("the level of a log line is a word", () => {
  const script = `import { createTelemetry } from ${JSON.stringify(MODULE)}; createTelemetry().log.warn({ host: "h" }, "text");`;
  const { stdout } = spawnSync(execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" });
  const { level, host, msg }: Record<string, unknown> = JSON.parse(stdout);
  assert.deepEqual({ level, host, msg }, { level: "warn", host: "h", msg: "text" });
});
