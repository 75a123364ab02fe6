import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findAnvil } from "../devnet/anvil.ts";
import { listen } from "../support/servers/ports.ts";

const DEMO = fileURLToPath(new URL("demo.ts", import.meta.url));

const run = async (...args: readonly string[]) => {
  const child = spawn(execPath, [DEMO, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const out: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => errors.push(chunk));
  const [code] = await once(child, "close");
  return { code, out: Buffer.concat(out).toString(), errors: Buffer.concat(errors).toString() };
};

test("--help lists the options, and unknown or bad flags are refused by name", async () => {
  const [help, unknown, bad] = await Promise.all([run("--help"), run("--prot", "1"), run("--port", "x")]);
  assert.equal(help.code, 0);
  assert.match(help.out, /--port N[\s\S]*--rate N[\s\S]*--seconds N[\s\S]*--plain/);
  assert.equal(unknown.code, 1);
  assert.match(unknown.errors, /^demo: Unknown option '--prot'/);
  assert.deepEqual([bad.code, bad.errors], [1, 'demo: --port: "x" is not a number\n']);
});

test("a busy port is named", async (t) => {
  const server = createServer();
  t.after(() => server.close());
  const port = await listen(server);
  const { code, errors } = await run("--port", `${port}`);
  assert.equal(code, 1);
  assert.match(errors, new RegExp(`^demo: cannot listen on 127.0.0.1:${port}: another process uses it`));
});

test("without anvil, one line says how to get it", () => {
  assert.throws(
    () => findAnvil(join(tmpdir(), "module.js")),
    /^Error: anvil is missing: `npm ci` installs it \(the packages @foundry-rs\/anvil and anvil-\S+\)$/,
  );
});
