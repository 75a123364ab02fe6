import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { metric } from "../support/clients/rpc.ts";
import { useSharedPort } from "../support/clients/sharedPort.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { type RunningCommand, startCommand } from "../support/servers/command.ts";
import { freePort } from "../support/servers/ports.ts";
import { startRedis } from "../support/servers/redis.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
const CLIENTS = 16;
const REQUESTS = 20;
/** Of each process, before one ends. */
const ANSWERS = 200;

test("a process that shares its port reloads and drains while it waits for a node", async (t) => {
  const [node, redis] = await Promise.all([createFakeNode(), startRedis(t)]);
  const [port, ...opsPorts] = await Promise.all([freePort(), freePort(), freePort()]);
  const folder = await mkdtemp(join(tmpdir(), "forebay-"));
  const file = join(folder, "forebay.json");
  const configure = (url: string): Promise<void> =>
    writeFile(
      file,
      JSON.stringify({
        chains: [{ name: "chain", nodes: [{ url }] }],
        server: { port, reusePort: true, drainDelayMs: 0 },
        cache: { redis: redis.url },
        log: { level: "silent" },
      }),
    );
  const answers = (url: string) => () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  const start = async (opsPort: number) => {
    const args = [BIN, "--config", file, "--ops-port", `${opsPort}`];
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    const ended = once(child, "exit").then(([code]) => code);
    t.after(async () => {
      child.kill("SIGKILL");
      await ended;
    });
    await until(answers(`http://127.0.0.1:${opsPort}/healthz`), "the ops port is open");
    return { child, ended };
  };
  t.after(async () => {
    await rm(folder, { recursive: true });
    await node.close();
  });
  await configure("http://127.0.0.1:9");
  const [ending, reloaded] = await Promise.all([start(opsPorts[0]), start(opsPorts[1])]);
  assert.equal(await answers(`http://127.0.0.1:${port}`)(), false);
  ending.child.kill("SIGTERM");
  assert.equal(await ending.ended, 0);
  await configure(node.url);
  reloaded.child.kill("SIGHUP");
  await until(answers(`http://127.0.0.1:${port}`), "the port is open after the reload");
  reloaded.child.kill("SIGTERM");
  assert.equal(await reloaded.ended, 0);
});

test("two processes share a port, and no request on an open connection fails when one ends", async (t) => {
  const [node, redis, port] = await Promise.all([createFakeNode(), startRedis(t), freePort()]);
  t.after(() => node.close());
  const start = () =>
    startCommand(t, {
      chains: [{ name: "chain", nodes: [{ url: node.url }] }],
      server: { port, reusePort: true },
      cache: { redis: redis.url },
    });
  const [ending, staying] = await Promise.all([start(), start()]);
  const answersOf = ({ opsUrl }: RunningCommand) => metric(opsUrl, "forebay_requests_total", 'outcome="ok"');
  let isOver = false;
  let answered = 0;
  const using = useSharedPort(port, {
    clients: CLIENTS,
    requests: REQUESTS,
    isOver: () => isOver,
    onAnswer: (use) => {
      answered = use.answered;
    },
  });
  await until(async () => {
    const counts = await Promise.all([ending, staying].map(answersOf));
    return counts.every((count) => count >= ANSWERS);
  }, "both processes answer");
  ending.signal("SIGTERM");
  assert.equal(await ending.ended, 0);
  const before = answered;
  await until(() => answered >= before + ANSWERS, "the other process answers alone");
  isOver = true;
  const { failures } = await using;
  assert.deepEqual(failures, []);
});
