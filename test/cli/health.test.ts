import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { listen } from "../support/servers/ports.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

/** Starts an ops port that returns this status on `/healthz`. */
const startOps = async (t: TestContext, status: number): Promise<number> => {
  const server = createServer((request, response) => {
    response.writeHead(request.url === "/healthz" ? status : 404).end();
  });
  t.after(() => server.close());
  return listen(server);
};

const health = async (args: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
  const child = spawn(execPath, [BIN, "health", ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...environment },
  });
  const chunks: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, "close");
  return { code, text: Buffer.concat(chunks).toString() };
};

test("the ops port of the configuration file is asked", async (t) => {
  const port = await startOps(t, 200);
  const folder = await mkdtemp(join(tmpdir(), "forebay-health-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "forebay.yaml");
  await writeFile(
    file,
    `chains: [{ name: op, nodes: [{ url: "http://x" }] }]\nserver: { opsHost: 0.0.0.0, opsPort: ${port} }\n`,
  );
  assert.deepEqual(await health(["--config", file]), { code: 0, text: "" });
});

test("the ops port of the environment is asked", async (t) => {
  const port = await startOps(t, 200);
  const result = await health([], { FOREBAY_UPSTREAM: "http://x", FOREBAY_OPS_PORT: `${port}` });
  assert.deepEqual(result, { code: 0, text: "" });
});

test("a process that is not healthy, or not there, is an error", async (t) => {
  const port = await startOps(t, 500);
  const unhealthy = await health(["--upstream", "http://x", "--ops-port", `${port}`]);
  assert.deepEqual(unhealthy, {
    code: 1,
    text: `forebay: http://127.0.0.1:${port}/healthz returned HTTP 500\n`,
  });
  const absent = await health(["--upstream", "http://x", "--ops-port", "9"]);
  assert.equal(absent.code, 1);
});
