import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import type { z } from "zod";
import { createProcess } from "../../src/app/main.ts";
import { configSchema } from "../../src/config/schema.ts";
import { loadTracer } from "../../src/telemetry/loadTracer.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";
import { type ReceivedSpan, startTraceReceiver } from "../support/servers/traceReceiver.ts";

const OWNER = `0x${"1".repeat(40)}`;
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";

/** Starts a forebay with tracing. Closing it sends the spans that wait. */
const start = async (endpoint: string, config: z.input<typeof configSchema>) => {
  const tracer = await loadTracer({ endpoint }, {}, "0.0.0");
  const telemetry = createTelemetry({ level: "silent", tracer });
  const forebay = await createProcess(configSchema.parse({ server: { port: 0, opsPort: 0 }, ...config }), telemetry);
  await forebay.ready;
  return forebay;
};

const attributesOf = ({ attributes }: ReceivedSpan) =>
  Object.fromEntries(attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? intValue]));

const childrenOf = (spans: readonly ReceivedSpan[], { spanId }: ReceivedSpan): readonly ReceivedSpan[] =>
  spans.filter(({ parentSpanId }) => parentSpanId === spanId);

test("each call is a span with its node and cache, and the request to the node is its child", async (t) => {
  const { spans, endpoint } = await startTraceReceiver(t);
  const node = await createFakeNode({ handlers: { eth_getBalance: () => "0x1" } });
  t.after(() => node.close());
  const forebay = await start(endpoint, {
    chains: [{ name: "op", nodes: [{ url: node.url }], state: { follow: false } }],
  });
  const headers = {
    traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`,
    tracestate: "vendor=1",
    baggage: "tenant=a",
  };
  await rpc(forebay.url, "eth_getBalance", [OWNER, "0x1"], headers);
  const sent = node.requests.findLast(({ body }) => body.includes("eth_getBalance"))?.headers;
  assert.deepEqual([sent?.traceparent, sent?.tracestate, sent?.baggage], Object.values(headers));
  await rpc(forebay.url, "eth_getBalance", [OWNER, "0x1"]);
  node.faults.error = { code: -32000, message: "no" };
  await rpc(forebay.url, "custom_method", []);
  await forebay.close();

  const [miss, hit] = spans.filter(({ name }) => name === "eth_getBalance");
  assert.ok(miss && hit);
  assert.deepEqual([miss.traceId, miss.parentSpanId, miss.traceState], [TRACE_ID, PARENT_ID, "vendor=1"]);
  assert.deepEqual(attributesOf(miss), {
    "rpc.system": "jsonrpc",
    "rpc.method": "eth_getBalance",
    "forebay.chain": "op",
    "forebay.cache": "miss",
    "forebay.node": "node1",
    "forebay.attempts": 1,
  });
  const [request, ...others] = childrenOf(spans, miss);
  assert.ok(request);
  assert.equal(others.length, 0);
  assert.deepEqual([request.name, request.traceId], ["node request", TRACE_ID]);
  assert.equal(attributesOf(request)["forebay.node"], "node1");

  assert.equal(attributesOf(hit)["forebay.cache"], "memory");
  assert.equal(attributesOf(hit)["forebay.attempts"], 0);
  assert.deepEqual(childrenOf(spans, hit), []);
  assert.notEqual(hit.traceId, TRACE_ID);

  const failed = spans.find(({ name }) => name === "other");
  assert.ok(failed);
  assert.deepEqual([failed.status.code, attributesOf(failed)["rpc.jsonrpc.error_code"]], [2, -32000]);
});

test("look-ups in Redis, and simulations with their reads of state, are steps of the call", async (t) => {
  const { spans, endpoint } = await startTraceReceiver(t);
  const [redis, devnet] = await Promise.all([startRedis(t), createDevnet({ network: "ethereum" })]);
  t.after(() => devnet.close());
  const forebay = await start(endpoint, {
    chains: [{ name: "dev", nodes: [{ url: devnet.url }], forks: "prague" }],
    cache: { redis: redis.url },
  });
  // With its transactions: forebay reads the block without them itself.
  await rpc(forebay.url, "eth_getBlockByNumber", ["0x0", true]);
  await rpc(forebay.url, "eth_simulateV1", [{ blockStateCalls: [{ calls: [{ to: OWNER }] }] }, "latest"]);
  await forebay.close();
  const namesBelow = (name: string) => {
    const call = spans.find((span) => span.name === name);
    assert.ok(call, name);
    return childrenOf(spans, call).map((span) => span.name);
  };
  assert.deepEqual(namesBelow("eth_getBlockByNumber"), ["redis get", "node request"]);
  assert.ok(namesBelow("eth_simulateV1").includes("simulation"));
});

test("a call whose client does not sample it, and a share of 0, record nothing", async (t) => {
  const { spans, endpoint } = await startTraceReceiver(t);
  const tracer = await loadTracer({ endpoint, sampleShare: 0 }, {}, "0.0.0");
  assert.equal(tracer?.begin("eth_chainId", undefined, {}), undefined);
  const all = await loadTracer({ endpoint }, {}, "0.0.0");
  const parent = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` };
  assert.equal(all?.begin("eth_chainId", parent, {}), undefined);
  all?.begin("eth_chainId", { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` }, {})?.end({});
  await Promise.all([tracer?.close(), all?.close()]);
  assert.deepEqual(
    spans.map(({ name }) => name),
    ["eth_chainId"],
  );
});

test("tracing is off, and loads no package, unless an option or a variable of OpenTelemetry is set", async () => {
  assert.equal(await loadTracer(undefined, { OTEL_SDK_DISABLED: "true", OTEL_SERVICE_NAME: "a" }, "0.0.0"), undefined);
  assert.equal(await loadTracer(undefined, { PATH: "/bin" }, "0.0.0"), undefined);
  const loaded = (environment: Readonly<Record<string, string>>): string => {
    const text = `
      const { loadTracer } = await import(${JSON.stringify(new URL("../../src/telemetry/loadTracer.ts", import.meta.url).href)});
      const tracer = await loadTracer(undefined, process.env, "0.0.0");
      const { createRequire } = await import("node:module");
      const names = Object.keys(createRequire(import.meta.url).cache).filter((name) => name.includes("@opentelemetry"));
      console.log(tracer !== undefined, names.length > 0);
      process.exit();
    `;
    return spawnSync(process.execPath, ["--input-type=module", "--eval", text], { encoding: "utf8", env: environment })
      .stdout;
  };
  assert.equal(loaded({}), "false false\n");
  assert.equal(loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" }), "true true\n");
});
