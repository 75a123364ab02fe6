import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
/** Calls are answered in this time after SIGTERM. */
const DRAIN_DELAY_MS = 1_500;

test("after SIGTERM the process is unready, finishes its requests and exits with 0", async (t) => {
  const node = await createFakeNode();
  const folder = await mkdtemp(join(tmpdir(), "forebay-shutdown-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "forebay.json");
  const server = { port: 0, opsPort: 0, drainDelayMs: DRAIN_DELAY_MS };
  await writeFile(file, JSON.stringify({ chains: [{ name: "chain", nodes: [{ url: node.url }] }], server }));
  const args = [BIN, "--config", file];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  t.after(async () => {
    if (child.exitCode === null) {
      child.kill("SIGKILL");
    }
    await exited;
    await node.close();
  });
  const started = Promise.withResolvers<{ readonly listening: string; readonly ops: string }>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const said = JSON.parse(line);
    if (said.listening !== undefined) {
      started.resolve(said);
    }
  });
  const { listening: url, ops } = await started.promise;
  const readyz = async (): Promise<number> => (await fetch(`${ops}/readyz`)).status;
  await until(async () => (await readyz()) === 200, "ready");

  node.faults.methods = ["slow_read"];
  node.faults.answer = "hang";
  const asked = node.asked("slow_read");
  const slow = rpc(url, "slow_read");
  await asked;
  child.kill("SIGTERM");
  await until(async () => (await readyz()) === 503, "unready");
  const answered = await rpc(url, "eth_chainId");
  assert.deepEqual([answered.status, answered.headers.get("connection")], [200, "close"]);
  node.closeSockets();
  await node.close();
  const { status } = await slow;
  assert.equal(status, 503);
  const [code] = await exited;
  assert.equal(code, 0);
});
