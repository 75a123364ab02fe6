import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";

const LAUNCH = fileURLToPath(new URL("../../src/cli/launch.js", import.meta.url));
const ARGS = ["--upstream", "http://127.0.0.1:9", "--port", "0", "--ops-port", "0"];
const isLinux = process.platform === "linux";

/** Starts forebay, and returns the MALLOC_ variables that its process was started with. */
const allocatorOf = async (t: TestContext, env: NodeJS.ProcessEnv): Promise<readonly string[]> => {
  const child = spawn(process.execPath, [LAUNCH, ...ARGS], { stdio: ["ignore", "pipe", "inherit"], env });
  t.after(async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"listening"')) {
      break;
    }
  }
  const variables = readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0");
  return variables.filter((text) => text.startsWith("MALLOC_")).sort();
};

test("the command runs with settings that make glibc return memory", { skip: !isLinux }, async (t) => {
  const { MALLOC_ARENA_MAX: _, ...env } = process.env;
  assert.deepEqual(await allocatorOf(t, env), [
    "MALLOC_ARENA_MAX=1",
    "MALLOC_MMAP_THRESHOLD_=131072",
    "MALLOC_TRIM_THRESHOLD_=131072",
  ]);
});

test("settings of the user are not changed", { skip: !isLinux }, async (t) => {
  const env = { ...process.env, MALLOC_ARENA_MAX: "4" };
  assert.deepEqual(await allocatorOf(t, env), ["MALLOC_ARENA_MAX=4"]);
});
