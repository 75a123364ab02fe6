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

test("a process that drains reports the usage of its last calls before it ends", async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const forebay = await startProcesses(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url }] }],
    access: { keys: [{ name: "wallet", sha256: sha256("wallet") }] },
  });
  const url = `${forebay.url}/chain/wallet`;
  const serving = await forebay.servingPids();
  node.faults.methods = ["eth_gasPrice"];
  node.faults.answer = "hang";
  const asked = node.asked("eth_gasPrice");
  const slow = callOverNewConnection(url, "eth_gasPrice").catch(() => undefined);
  await asked;
  await Promise.all(Array.from({ length: 20 }, () => callOverNewConnection(url, "eth_chainId")));
  forebay.signal("SIGTERM");
  // The process with the slow call drains until the call ends.
  await until(async () => {
    const running = await forebay.servingPids();
    return serving.some((pid) => !running.includes(pid));
  }, "one process has ended");
  const { total } = report.parse(await (await fetch(`${forebay.opsUrl}/usage`)).json());
  assert.equal(total.calls, 20);
  await node.close();
  await slow;
  assert.equal(await forebay.ended, 0);
});

const lineOfCall = z.object({ method: z.string(), cache: z.string(), outcome: z.string(), traceId: z.string() });

test("each process records the spans of its calls, and logs a line for each, until a reload", async (t) => {
  const { spans, endpoint } = await startTraceReceiver(t);
  const node = await createFakeNode();
  t.after(() => node.close());
  const config = { chains: [{ name: "chain", nodes: [{ url: node.url }] }], tracing: { endpoint } };
  const forebay = await startProcesses(t, { ...config, log: { requests: 1 } });
  const samples = () => forebay.lines.filter(({ msg }) => msg === "sampled call");
  await Promise.all(Array.from({ length: 12 }, () => callOverNewConnection(forebay.url, "eth_blockNumber")));
  const responses = await Promise.all(
    [1, 2].map((process) => metric(forebay.opsUrl, "forebay_process_responses_total", `process="${process}"`)),
  );
  assert.ok(Math.min(...responses) > 0, `both processes answered: ${responses}`);
  await until(() => samples().length === 12, "each call has a line");
  const sampled = samples().map((line) => lineOfCall.parse(line));
  assert.ok(sampled.every(({ method, outcome }) => method === "eth_blockNumber" && outcome === "ok"));
  assert.equal(new Set(samples().map(({ pid }) => pid)).size, 2);

  await forebay.reconfigure({ ...config, log: { requests: 0 } });
  await until(() => forebay.lines.some(({ msg }) => msg === "configuration applied"), "the reload");
  await Promise.all(Array.from({ length: 12 }, () => callOverNewConnection(forebay.url, "eth_chainId")));
  // A drain sends the spans that wait.
  forebay.signal("SIGTERM");
  assert.equal(await forebay.ended, 0);
  const recorded = spans.filter(({ name }) => name === "eth_blockNumber").map(({ traceId }) => traceId);
  assert.deepEqual(sampled.map(({ traceId }) => traceId).toSorted(), recorded.toSorted());
  assert.equal(recorded.length, 12);
  assert.equal(samples().length, 12, "no line after the reload");
});
