import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execPath } from "node:process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { pack } from "../../pack.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { ROOT } from "../docs/repositoryFiles.ts";

const PROJECT = fileURLToPath(new URL("project/", import.meta.url));
/** What the project needs beside forebay and its dependencies. */
const OWN_PACKAGES = ["viem", "@types/node"];
/** The project ends by itself long before, also on a busy machine. */
const LIMIT_MS = 300_000;

let folder: string;

/** Installs the packed package into a copy of the project, without a network: its dependencies are those of the repository. */
const install = (): void => {
  const tarball = pack(join(folder, "dist"));
  const modules = join(folder, "project/node_modules");
  cpSync(PROJECT, join(folder, "project"), { recursive: true });
  writeFileSync(join(folder, "project/package.json"), '{ "type": "module" }\n');
  mkdirSync(join(modules, "forebay"), { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "-C", join(modules, "forebay"), "--strip-components=1"]);
  const { dependencies } = z
    .object({ dependencies: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(join(modules, "forebay/package.json"), "utf8")));
  for (const name of [...Object.keys(dependencies), ...OWN_PACKAGES]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
};

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "forebay-library-"));
  install();
});

after(() => rm(folder, { recursive: true, force: true }));

/** Runs a program of the project. Resolves with its output when it has ended by itself. */
const run = async (file: string, ...args: readonly string[]): Promise<string> => {
  const child = spawn(execPath, [file, ...args], {
    cwd: join(folder, "project"),
    stdio: ["ignore", "pipe", "inherit"],
    timeout: LIMIT_MS,
  });
  const output = child.stdout.setEncoding("utf8").toArray();
  assert.deepEqual(await once(child, "exit"), [0, null]);
  return (await output).join("");
};

test("the types of the package fit a project", () => {
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  execFileSync(compiler, ["-p", "."], { cwd: join(folder, "project"), stdio: "inherit" });
});

test("an import starts nothing: no timer, no thread, no handler of a signal", async () => {
  const { before, after } = JSON.parse(await run("imports.ts"));
  assert.deepEqual(after, before);
});

test("viem, fetch and a server of the program in one process, which ends after close", async (t) => {
  const anvil = await startAnvil([]);
  t.after(() => anvil.close());
  assert.equal(await run("app.ts", anvil.url, join(folder, "data")), "done\n");
});
