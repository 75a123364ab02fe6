import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import type { Received } from "../../src/core/context.ts";
import { NodeError } from "../../src/core/node.ts";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { invalidParams, type RpcError, unavailable } from "../../src/jsonrpc/rpcError.ts";
import { createCallLog } from "../../src/telemetry/callReports.ts";

const asker = { caller: { clientId: "203.0.113.1" }, received: { headers: {}, asked: {}, requestId: "r-1" } };

interface ToldCall {
  readonly seconds: number;
  readonly reply?: RpcResponse;
  readonly error?: RpcError;
  readonly received?: Received;
}

const createRecordedLog = (requestLog = { share: 0 }) => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (text: string) => lines.push(JSON.parse(text)) });
  const tell = createCallLog("main", { log, requestLog });
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
    /** Reports a call with a secret parameter. */
    tellAll: ({ seconds, reply, error, received = asker.received }: ToldCall) =>
      tell({
        call: createCall("eth_call", ["s3cret"]),
        context: { caller: { clientId: "s3cret" }, received, signal: clientId.signal },
        reply,
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
  createCallLog("main", { log, requestLog: { share: 0 } })({
    call: createCall("eth_call", []),
    context: {
      ...asker,
      signal: new AbortController().signal,
      received: {
        ...asker.received,
        asked: { traceHeaders: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } },
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

test("sampled calls have a line with outcome, cache and trace, and nothing of the parameters and the client", (t) => {
  const requestLog = { share: 1 };
  const { lines, tellAll } = createRecordedLog(requestLog);
  const received = {
    ...asker.received,
    asked: { traceHeaders: { traceparent: `00-${"a".repeat(32)}-b7ad6b7169203331-01` } },
  };
  const reply = { body: Buffer.from("1"), status: { hit: "memory" } } as const;
  tellAll({ seconds: 0.000_123_4, reply, received });
  tellAll({ seconds: 0.25, reply: { ...reply, status: { fwd: "miss", stored: true } } });
  tellAll({ seconds: 0.001, error: invalidParams("no") });
  const common = { level: 30, chain: "main", method: "eth_call", msg: "sampled call" };
  assert.deepEqual(lines, [
    { ...common, outcome: "ok", cache: "memory", milliseconds: 0.123, traceId: "a".repeat(32) },
    { ...common, outcome: "ok", cache: "miss", milliseconds: 250 },
    { ...common, outcome: "invalid", milliseconds: 1 },
  ]);

  lines.length = 0;
  const random = t.mock.method(Math, "random", () => 0.5);
  requestLog.share = 0.5;
  tellAll({ seconds: 0.1, reply });
  requestLog.share = 0.51;
  tellAll({ seconds: 0.1, reply });
  assert.equal(lines.length, 1);
  requestLog.share = 0;
  tellAll({ seconds: 0.1, reply });
  assert.deepEqual([lines.length, random.mock.callCount()], [1, 2], "a share of 0 costs nothing");
});

test("a reload to level debug logs each call from then on", () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (text: string) => lines.push(JSON.parse(text)) });
  const tell = createCallLog("main", { log, requestLog: { share: 0 } });
  const context = { ...asker, signal: new AbortController().signal };
  const outcome = { call: createCall("eth_call", []), context, reply: undefined, error: undefined, seconds: 0 };
  tell(outcome);
  log.level = "debug";
  tell(outcome);
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ["call"],
  );
});
