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

test("lines with an error are sampled by text, chain and node, and other lines are not", () => {
  const script = `
    import { createTelemetry } from ${JSON.stringify(MODULE)};
    const { log } = createTelemetry();
    let nowMs = 0;
    performance.now = () => nowMs;
    const err = new Error("broken");
    for (const chain of ["a", "a", "b", "a"]) log.error({ err, chain }, "failed");
    log.warn({ host: "h" }, "text");
    log.warn({ host: "h" }, "text");
    nowMs = 1_000;
    log.error({ err, chain: "a" }, "failed");`;
  const { stdout } = spawnSync(execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" });
  const lines: readonly Record<string, unknown>[] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ msg, chain, skipped }) => [msg, chain, skipped]),
    [
      ["failed", "a", undefined],
      ["failed", "b", undefined],
      ["text", undefined, undefined],
      ["text", undefined, undefined],
      ["failed", "a", 2],
    ],
  );
});
