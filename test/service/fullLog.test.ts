import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { freePort } from "../support/servers/ports.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
const DROPPED = "forebay_log_lines_dropped_total";
/** Calls of one batch. Each has a line at level debug. */
const CALLS = 1_000;
/** A process that hangs at its end is killed by then. */
const END_MS = 20_000;

/** Starts forebay with a log line for each call. `stdout` is a file descriptor, or a pipe. */
const start = async (t: TestContext, stdout: number | "pipe") => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const folder = await mkdtemp(join(tmpdir(), "forebay-log-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [port, opsPort] = [await freePort(), await freePort()];
  const file = join(folder, "forebay.json");
  const chains = [{ name: "chain", nodes: [{ url: node.url }] }];
  const server = { port, opsPort, drainDelayMs: 0 };
  await writeFile(file, JSON.stringify({ chains, server, log: { level: "debug" } }));
  const child = spawn(execPath, [BIN, "--config", file], { stdio: ["ignore", stdout, "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const opsUrl = `http://127.0.0.1:${opsPort}`;
  const isReady = () =>
    fetch(`${opsUrl}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(isReady, "forebay is ready");
  return { child, url: `http://127.0.0.1:${port}`, opsUrl };
};

const sendBatch = async (url: string): Promise<void> => {
  const batch = Array.from({ length: CALLS }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_chainId", params: [] }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(batch),
  });
  assert.equal(((await response.json()) as unknown[]).length, CALLS);
};

/** Sends calls until log lines are dropped, then one more call, and ends the process. */
const assertServes = async ({ child, url, opsUrl }: { child: ChildProcess; url: string; opsUrl: string }) => {
  await until(async () => {
    await sendBatch(url);
    return (await metric(opsUrl, DROPPED)) > 0;
  }, "lines are dropped and counted");
  const { status } = await rpc(url, "eth_blockNumber");
  assert.equal(status, 200);
  const ended = once(child, "exit", { signal: AbortSignal.timeout(END_MS) });
  child.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
};

test("with stdout on a full disk, calls are answered, and lost log lines are counted", async (t) => {
  const full = await open("/dev/full", "w");
  t.after(() => full.close());
  await assertServes(await start(t, full.fd));
});

test("with a reader of stdout that has stopped, calls are answered, and lost log lines are counted", async (t) => {
  const forebay = await start(t, "pipe");
  // Nothing reads the pipe.
  await assertServes(forebay);
});
