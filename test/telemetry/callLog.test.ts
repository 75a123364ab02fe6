import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { NodeError } from "../../src/core/node.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { invalidParams, type RpcError, unavailable } from "../../src/jsonrpc/rpcError.ts";
import { createCallLog } from "../../src/telemetry/callReports.ts";

const asker = { caller: { clientId: "203.0.113.1" }, received: { headers: {}, requestId: "r-1" } };

const createRecordedLog = () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (text: string) => lines.push(JSON.parse(text)) });
  const tell = createCallLog("main", log);
  const clientId = new AbortController();
  return {
    lines,
    leave: () => clientId.abort(),
    tell: (method: string, seconds: number, error?: RpcError) =>
      tell({
        call: createCall(method, []),
        context: { ...asker, signal: clientId.signal },
        reply: undefined,
        error,
        seconds,
      }),
  };
};

test("slow and failed calls are logged with method and request; successful calls and client errors are not", () => {
  const { lines, tell } = createRecordedLog();
  tell("eth_call", 0.5);
  tell("eth_call", 0.5, invalidParams("no"));
  tell("eth_getLogs", 1.234);
  tell("eth_call", 30, new NodeError("timeout", "ours", "ours: no answer", { status: 504 }));
  const common = { level: 40, chain: "main", clientId: "203.0.113.1", requestId: "r-1" };
  assert.deepEqual(lines, [
    { ...common, method: "eth_getLogs", milliseconds: 1234, msg: "slow call" },
    {
      ...common,
      method: "eth_call",
      milliseconds: 30_000,
      node: "ours",
      code: -32603,
      reason: "ours: no answer",
      msg: "failed call",
    },
  ]);
});

test("lines of one kind become rarer, from one a second to one a minute, with the number of skipped lines", (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const { lines, tell } = createRecordedLog();
  for (let at = 0; at < 100; at++) {
    tell(`m${at}`, 0, unavailable("no node"));
  }
  assert.equal(lines.length, 1);
  nowMs = 1_000;
  tell("last", 0, unavailable("no node"));
  assert.deepEqual(
    lines.map(({ method, skipped }) => [method, skipped]),
    [
      ["m0", undefined],
      ["last", 99],
    ],
  );
  for (nowMs = 1_001; nowMs <= 600_000; nowMs += 100) {
    tell("later", 0, unavailable("no node"));
  }
  assert.equal(lines.length, 15, "2, 4, 8, 16, 32 and then 60 seconds apart");
  nowMs += 200_000;
  tell("fresh", 0, unavailable("no node"));
  nowMs += 1_000;
  tell("fresh", 0, unavailable("no node"));
  assert.equal(lines.length, 17, "a second apart after a pause");
});

test("a call whose client has disconnected is not logged as a failure", () => {
  const { lines, tell, leave } = createRecordedLog();
  leave();
  tell("eth_call", 2, new NodeError("other", "ours", "ours: the caller has left"));
  assert.deepEqual(lines, []);
});

test("at level debug every call has a line with chain, method and trace id", () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { base: null, timestamp: false, level: "debug" },
    { write: (text: string) => lines.push(JSON.parse(text)) },
  );
  createCallLog(
    "main",
    log,
  )({
    call: createCall("eth_call", []),
    context: {
      ...asker,
      signal: new AbortController().signal,
      received: {
        ...asker.received,
        traceHeaders: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
      },
    },
    reply: undefined,
    error: undefined,
    seconds: 0.012,
  });
  assert.deepEqual(lines, [
    {
      level: 20,
      chain: "main",
      method: "eth_call",
      milliseconds: 12,
      clientId: "203.0.113.1",
      requestId: "r-1",
      traceId: "0af7651916cd43dd8448eb211c80319c",
      msg: "call",
    },
  ]);
});
