import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { listen } from "../support/servers/ports.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

const busyPort = async (t: TestContext): Promise<number> => {
  const server = createServer();
  t.after(() => server.close());
  return listen(server);
};

/** Starts forebay and returns its exit code and what it wrote to stderr. */
const run = async (args: readonly string[]) => {
  const child = spawn(execPath, [BIN, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  const chunks: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, "close");
  return { code, text: Buffer.concat(chunks).toString() };
};

for (const [flag, other, setting] of [
  ["--port", "--ops-port", "server.host and server.port, or --host and --port"],
  ["--ops-port", "--port", "server.opsHost and server.opsPort, or --ops-host and --ops-port"],
] as const) {
  test(`a busy port names ${flag}`, async (t) => {
    const port = await busyPort(t);
    const { code, text } = await run(["--upstream", "http://127.0.0.1:9", flag, `${port}`, other, "0"]);
    assert.equal(code, 1);
    assert.equal(text, `forebay: cannot listen on 127.0.0.1:${port}: another process uses it (${setting})\n`);
  });
}
