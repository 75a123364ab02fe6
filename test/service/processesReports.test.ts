import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { z } from "zod";
import { callOverNewConnection } from "../support/clients/freshConnection.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";
import { startTraceReceiver } from "../support/servers/traceReceiver.ts";

const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");
const report = z.object({
  keys: z.array(z.object({ key: z.string(), calls: z.number(), sentBytes: z.number() })),
  total: z.object({ calls: z.number() }),
});

test("the usage report and the metrics of keys are sums of all processes, also after one was killed", async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const keys = ["wallet", "bot"].map((name) => ({ name, sha256: sha256(name) }));
  const forebay = await startProcesses(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url }] }],
    access: { keys },
    usage: { topKeys: 1 },
  });
  const call = (key: string): Promise<unknown> => callOverNewConnection(`${forebay.url}/chain/${key}`, "eth_chainId");
  const callAll = (key: string, count: number) => Promise.all(Array.from({ length: count }, () => call(key)));
  const usage = async () => report.parse(await (await fetch(`${forebay.opsUrl}/usage`)).json());
  const callsOf = async (): Promise<Readonly<Record<string, number>>> =>
    Object.fromEntries((await usage()).keys.map(({ key, calls }) => [key, calls]));
  await Promise.all([callAll("wallet", 30), callAll("bot", 10)]);
  assert.deepEqual(await callsOf(), { wallet: 30, bot: 10 });
  assert.equal(await metric(forebay.opsUrl, "forebay_key_calls_total", 'key="wallet"'), 30);
  assert.equal(await metric(forebay.opsUrl, "forebay_key_calls_total", 'key="other"'), 10);
  assert.equal(await metric(forebay.opsUrl, "forebay_build_info{"), 1);

  const [killed] = await forebay.servingPids();
  assert.ok(killed !== undefined);
  process.kill(killed, "SIGKILL");
  await until(async () => (await metric(forebay.opsUrl, "forebay_process_restarts_total")) === 1, "it ended");
  await until(async () => (await metric(forebay.opsUrl, "forebay_processes ")) === 2, "the process is replaced");
  await callAll("bot", 25);
  assert.deepEqual(await callsOf(), { wallet: 30, bot: 35 });
  assert.equal((await usage()).total.calls, 65);
});

test("each process records the spans of its calls", async (t) => {
  const { spans, endpoint } = await startTraceReceiver(t);
  const node = await createFakeNode();
  t.after(() => node.close());
  const forebay = await startProcesses(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url }] }],
    tracing: { endpoint },
  });
  await Promise.all(Array.from({ length: 12 }, () => callOverNewConnection(forebay.url, "eth_blockNumber")));
  const responses = await Promise.all(
    [1, 2].map((process) => metric(forebay.opsUrl, "forebay_process_responses_total", `process="${process}"`)),
  );
  assert.ok(Math.min(...responses) > 0, `both processes answered: ${responses}`);
  // A drain sends the spans that wait.
  forebay.signal("SIGTERM");
  assert.equal(await forebay.ended, 0);
  assert.equal(spans.filter(({ name }) => name === "eth_blockNumber").length, 12);
});
