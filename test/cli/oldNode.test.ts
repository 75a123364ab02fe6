import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readVersion } from "../../src/app/main.ts";

const LAUNCH = fileURLToPath(new URL("../../src/cli/launch.js", import.meta.url));
/** Preloads a module that claims an old version. */
const AS_OLD = [
  "--import",
  `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.19.0"}})`,
];

/** Runs a copy of the command in a folder without packages. */
const runAlone = async (t: TestContext, program: string, args: readonly string[]) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-old-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await cp(LAUNCH, join(folder, "launch.js"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  return spawnSync(program, [...args, join(folder, "launch.js"), "--version"], { encoding: "utf8" });
};

test("on an old Node.js, forebay runs on the runtime that is installed as a package", () => {
  const printed = execFileSync(process.execPath, [...AS_OLD, LAUNCH, "--version"], { encoding: "utf8" });
  assert.equal(printed.trim(), readVersion());
  const { status, stderr } = spawnSync(process.execPath, [...AS_OLD, LAUNCH, "--nothing"], { encoding: "utf8" });
  assert.deepEqual([status, stderr.startsWith("forebay: ")], [1, true]);
});

test("the process that runs on it gets SIGTERM, drains and ends", async () => {
  const args = ["--upstream", "http://127.0.0.1:9", "--port", "0", "--ops-port", "0"];
  const child = spawn(process.execPath, [...AS_OLD, LAUNCH, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"listening"')) {
      break;
    }
  }
  const ended = once(child, "exit");
  // The second signal ends the drain at once.
  child.kill("SIGTERM");
  child.kill("SIGINT");
  assert.deepEqual(await ended, [null, "SIGKILL"]);
});

test("without that package, it names the version that it needs", async (t) => {
  const { status, stdout, stderr } = await runAlone(t, process.execPath, AS_OLD);
  assert.deepEqual([status, stdout], [1, ""]);
  assert.equal(stderr, `forebay: Node.js 24 or later is needed. This is 20.19.0, ${process.execPath}.\n`);
});

/** A Node.js of this machine that is older than 24. */
const OLD = ["/usr/bin/node", "/usr/local/bin/node"].find((program) => {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return stdout?.startsWith("v") && Number(stdout.slice(1).split(".")[0]) < 24;
});

test("a real old Node.js does the same", { skip: OLD === undefined && "no old Node.js" }, async (t) => {
  const { stderr } = await runAlone(t, OLD ?? "", []);
  assert.match(stderr, /^forebay: Node\.js 24 or later is needed\. This is \d+\.\d+\.\d+, \S+\.\n$/);
  const printed = execFileSync(OLD ?? "", [LAUNCH, "--version"], { encoding: "utf8" });
  assert.equal(printed.trim(), readVersion());
});
