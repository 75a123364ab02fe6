import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { on, once } from "node:events";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { execPath } from "node:process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { Worker } from "node:worker_threads";
import { pack } from "../../pack.ts";
import type { TaskName } from "../../src/app/worker.ts";
import { LOADED } from "../../src/threads/threadTask.ts";

const INSTALL = ["install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];

/** Nothing listens on port 9 (discard). Unreachable nodes do not end the process (docs/operate.md, Readiness). */
const CONFIG = `
chains:
  - name: down
    nodes: [{ url: "http://127.0.0.1:9" }]
server: { port: 0, opsPort: 0, drainDelayMs: 0, drainTimeoutMs: 1000 }
`;

let folder: string;
let tarball: string;
const built = () => join(folder, "dist");

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "forebay-pack-"));
  tarball = pack(built());
});

after(() => rm(folder, { recursive: true, force: true }));

test("the manifest has no requirements except the dependencies, and tracing and payments as options", () => {
  const manifest: Record<string, unknown> = JSON.parse(readFileSync(join(built(), "package.json"), "utf8"));
  const own: Record<string, unknown> = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.deepEqual(manifest.dependencies, own.dependencies);
  assert.deepEqual(manifest.bin, { forebay: "lib/cli/launch.js" });
  assert.ok(
    Object.keys(Object(manifest.optionalDependencies)).every((name) => /^@(?:opentelemetry|x402)\//.test(name)),
  );
  assert.deepEqual(manifest.peerDependenciesMeta, { viem: { optional: true } });
  assert.deepEqual(Object(manifest.exports)["./viem"], {
    types: "./lib/library/viemTransport.d.ts",
    default: "./lib/library/viemTransport.js",
  });
  for (const key of ["devDependencies", "scripts"]) {
    assert.ok(!(key in manifest), key);
  }
});

test("of the folder with the crate, only the modules and their notice are packed", () => {
  assert.deepEqual(readdirSync(join(built(), "lib/evm/wasm")).sort(), ["NOTICE", "ethereum.wasm", "optimism.wasm"]);
});

test("the parts of the status page are packed", () => {
  assert.deepEqual(readdirSync(join(built(), "lib/admin/page")).sort(), ["page.css", "page.html", "page.js"]);
});

test("every other file is JavaScript or a declaration of what programs import, and finds what it loads", () => {
  const files = globSync("lib/**/*", { cwd: built(), withFileTypes: true }).filter(
    (entry) => entry.isFile() && !/(?:evm\/wasm|admin\/page)$/.test(entry.parentPath),
  );
  assert.ok(files.length > 0);
  for (const { name, parentPath } of files) {
    assert.match(name, /\.js$|\.d\.ts$/);
    const text = readFileSync(join(parentPath, name), "utf8");
    for (const [, target = ""] of text.matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g)) {
      // TypeScript reads `x.d.ts` for `x.ts`.
      const file = target.replace(/\.ts$/, ".d.ts");
      assert.ok(existsSync(resolve(parentPath, file)), `${name} imports ${target}`);
    }
    for (const [, target = ""] of text.matchAll(/new URL\("(\.[^"]+)", import\.meta\.url\)/g)) {
      assert.ok(existsSync(resolve(parentPath, target)), `${name} loads ${target}`);
    }
  }
});

test("npm accepts the package for publication", () => {
  const options = ["publish", "--dry-run", "--json", "--loglevel=error"];
  const printed = execFileSync("npm", options, { cwd: built(), encoding: "utf8" });
  const version = versionOf(join(built(), "lib/cli/bin.js"));
  assert.ok(printed.includes(`"id": "forebay@${version}"`), printed.slice(0, 200));
  assert.ok(printed.includes('"path": "lib/cli/launch.js"'));
});

test("the tarball installs into an empty folder, starts there, and ends on SIGTERM", async () => {
  const home = join(folder, "home");
  execFileSync("npm", [...INSTALL, "--prefix", home, tarball], { cwd: folder, stdio: "pipe" });
  const bin = join(home, "node_modules/forebay/lib/cli/bin.js");
  assert.equal(execFileSync(execPath, [bin, "--version"], { encoding: "utf8" }).trim(), versionOf(bin));
  await writeFile(join(home, "forebay.yaml"), CONFIG);

  const child = spawn(execPath, [bin, "--config", join(home, "forebay.yaml")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  after(() => child.kill("SIGKILL"));
  const ops = await opsUrlOf(child.stdout);
  assert.equal((await fetch(`${ops}/healthz`)).status, 200);
  assert.equal((await fetch(`${ops}/readyz`)).status, 503);
  assert.match(await (await fetch(`${ops}/metrics`)).text(), /^forebay_requests_in_flight 0$/m);
  child.kill("SIGTERM");
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("the worker entry of the package loads each task", async () => {
  const url = new URL(`file://${join(folder, "home/node_modules/forebay/lib/app/worker.js")}`);
  for (const task of ["evm", "verification"] satisfies TaskName[]) {
    const worker = new Worker(url, { workerData: { task, data: { nativeContracts: [] } } });
    // The first message is of the channel.
    for await (const [message] of on(worker, "message")) {
      if (message === LOADED) {
        break;
      }
    }
    await worker.terminate();
  }
});

const versionOf = (bin: string): string => {
  const manifest: { version?: unknown } = JSON.parse(readFileSync(join(dirname(bin), "../../package.json"), "utf8"));
  return String(manifest.version);
};

/** Reads the URL from the log line of the start. */
const opsUrlOf = async (output: NodeJS.ReadableStream): Promise<string> => {
  const lines = createInterface({ input: output });
  for await (const line of lines) {
    const entry: { ops?: unknown } = JSON.parse(line);
    if (typeof entry.ops === "string") {
      output.resume();
      return entry.ops;
    }
  }
  throw new Error("it ended before it listened");
};
