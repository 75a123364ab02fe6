import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import {
  ATTACKER,
  BUDGET,
  CALLED,
  headOf,
  LARGE_BYTES,
  MIB,
  OTHER,
  OVER_BUDGET,
  openWebSocket,
  SIMULATE,
  SMALL_BYTES,
  start,
} from "./budgetedService.ts";

/** Answers in the buffers of the kernel are not forebay's. */
const PIPELINED = 8;
/** Code that returns 128 KiB. */
const RETURNS = "0x620200005ff3";
/** Code that logs 128 KiB. */
const LOGS = "0x620200005fa0";
/** Code that reads a slot. */
const READS_SLOT = "0x5f5450";
const getCode = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "eth_getCode",
  params: [`0x${"11".repeat(20)}`, "0x1"],
});

const batchOf = (method: string, calls: number): string =>
  JSON.stringify(Array.from({ length: calls }, (_, id) => ({ jsonrpc: "2.0", id, method, params: [id] })));

const simulationOf = (code: string, calls: number): readonly unknown[] => [
  {
    blockStateCalls: [
      {
        blockOverrides: { gasLimit: "0xffffffffffff" },
        stateOverrides: { [CALLED]: { code } },
        calls: Array.from({ length: calls }, () => ({ from: CALLED, to: CALLED })),
      },
    ],
  },
  "latest",
];

test("a cached response that many slow readers wait for counts once, and the last one releases it", async (t) => {
  const { used, post, open } = await start(t);
  await post(OTHER, "eth_getCode", [`0x${"11".repeat(20)}`, "0x1"]);
  const readers = Array.from({ length: 20 }, () => {
    const socket = open(ATTACKER, (headOf(getCode.length) + getCode).repeat(PIPELINED));
    socket.pause();
    return socket;
  });
  const waiting = () => used("responses");
  await until(async () => (await waiting()) > 0, "responses wait");
  assert.ok((await waiting()) < 1.1 * LARGE_BYTES, `${await waiting()} bytes`);
  for (const socket of readers) {
    socket.destroy();
  }
  await until(async () => (await waiting()) === 0, "nothing waits");
});

test("responses of nodes that slow readers do not read stay within the client's share, and are released", async (t) => {
  const { service, post, open } = await start(t);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "custom_large", params: [] });
  const sockets: Socket[] = [];
  let most = 0;
  for (let index = 0; index < 40; index++) {
    const socket = open(ATTACKER, (headOf(body.length) + body).repeat(PIPELINED));
    socket.pause();
    sockets.push(socket);
  }
  // One scrape: bytes change their kind between two.
  const total = () => metric(service.opsUrl, "forebay_memory_budget_used_bytes");
  await until(async () => {
    most = Math.max(most, await total());
    return most > BUDGET / 2 - LARGE_BYTES;
  }, "the share is used");
  assert.ok(most <= BUDGET / 2, `${most} bytes`);
  assert.equal((await post(OTHER, "custom_large")).status, 200);
  for (const socket of sockets) {
    socket.destroy();
  }
  await until(async () => (await total()) === 0, "nothing waits");
});

test("a client that reads nothing of a response is disconnected after the write timeout", async (t) => {
  const { used, open } = await start(t, { writeTimeoutMs: 1_000 });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "custom_large", params: [] });
  const socket = open(ATTACKER, (headOf(body.length) + body).repeat(PIPELINED));
  socket.pause();
  await until(async () => (await used("responses")) > 0, "responses wait");
  await until(async () => (await used("responses")) === 0, "the connection is closed");
});

test("WebSockets that do not read 63 answers of 2 MB hold few of them, and are closed by the write timeout", async (t) => {
  const { service, used, node } = await start(t, { writeTimeoutMs: 1_000 });
  const sockets = await Promise.all(Array.from({ length: 5 }, () => openWebSocket(t, service.url, ATTACKER)));
  for (const socket of sockets) {
    socket.pause();
    for (let id = 0; id < 63; id++) {
      socket.send(getCode);
    }
  }
  let most = 0;
  await until(async () => {
    most = Math.max(most, (await used("responses")) + (await used("requests")) + (await used("upstream")));
    return most > 2 * LARGE_BYTES;
  }, "answers wait");
  assert.ok(most <= BUDGET / 2, `${most} bytes`);
  assert.ok(node.count("eth_getCode") <= 2, "the answers are hits");
  await until(async () => (await metric(service.opsUrl, "forebay_websockets")) === 0, "all are closed");
  assert.equal(await used("responses"), 0);
});

test("WebSockets that do not read batches of small results stay within the client's share, and others are served", async (t) => {
  const { service, node, refused, post } = await start(t, { writeTimeoutMs: 5_000 });
  const sockets = await Promise.all(Array.from({ length: 5 }, () => openWebSocket(t, service.url, ATTACKER)));
  const body = batchOf("custom_small", 1_000);
  for (const socket of sockets) {
    socket.pause();
    for (let batch = 0; batch < 20; batch++) {
      socket.send(body);
    }
  }
  let most = 0;
  await until(async () => {
    most = Math.max(most, await metric(service.opsUrl, "forebay_memory_budget_used_bytes"));
    return (await refused("requests")) + (await refused("responses")) > 0;
  }, "a batch or a result is refused");
  // Bytes that no single client holds, such as answers for several clients, add a little.
  assert.ok(most <= 0.6 * BUDGET, `${most} bytes`);
  assert.equal((await post(OTHER, "custom_large")).status, 200);
  for (const socket of sockets) {
    socket.terminate();
  }
  await until(
    async () => (await metric(service.opsUrl, "forebay_memory_budget_used_bytes")) === 0,
    "nothing is held any more",
  );
  assert.ok(node.count("custom_small") < 100_000);
});

test("a batch of 60 MB over HTTP starts its calls as its client reads, and holds a part of it", async (t) => {
  const { node, used, open } = await start(t);
  const body = batchOf("custom_small", 1_000);
  const socket = open(ATTACKER, headOf(body.length) + body);
  socket.pause();
  await until(async () => (await used("responses")) > 0 && node.count("custom_small") > 64, "calls are answered");
  // Part of the response is in the buffers of the kernel.
  assert.ok((await used("responses")) < BUDGET / 4);
  assert.ok(node.count("custom_small") < 500, `${node.count("custom_small")} calls`);
  let bytes = 0;
  socket.on("data", ({ length }: Buffer) => {
    bytes += length;
  });
  socket.resume();
  await until(() => bytes > 1_000 * SMALL_BYTES, "the whole response arrives");
  assert.equal(node.count("custom_small"), 1_000);
  await until(async () => (await used("responses")) === 0, "nothing is held any more");
});

test("a batch whose results find no room gets an error for each of the others", async (t) => {
  const { service } = await start(t, { memoryBudgetBytes: MIB });
  const headers = { "content-type": "application/json", "x-forwarded-for": ATTACKER };
  const response = await fetch(service.url, { method: "POST", headers, body: batchOf("custom_small", 100) });
  const answers: readonly { id: number; result?: string; error?: { message: string } }[] = Object(
    await response.json(),
  );
  assert.deepEqual(
    answers.map(({ id }) => id),
    Array.from({ length: 100 }, (_, id) => id),
  );
  const errors = answers.flatMap(({ error }) => error?.message ?? []);
  assert.ok(errors.length > 0 && errors.length < 100, `${errors.length} errors`);
  assert.ok(errors.every((message) => message === OVER_BUDGET));
});

test("a WebSocket that reads slowly gets all its answers", async (t) => {
  const { service } = await start(t);
  const socket = await openWebSocket(t, service.url, ATTACKER);
  socket.pause();
  for (let id = 0; id < 63; id++) {
    socket.send(getCode);
  }
  let answers = 0;
  socket.on("message", () => {
    answers++;
    socket.pause();
    setImmediate(() => socket.resume());
  });
  socket.resume();
  await until(() => answers === 63, "all answers arrive");
});

for (const { what, code } of [
  { what: "return data", code: RETURNS },
  { what: "logs", code: LOGS },
]) {
  test(`a simulation ends when its ${what} exceed the limit of its result`, async (t) => {
    const { post, used } = await start(t);
    const { text: fits } = await post(ATTACKER, "eth_simulateV1", simulationOf(code, 15));
    assert.equal(JSON.parse(fits).error, undefined, fits.slice(0, 500));
    assert.ok(fits.length > 3 * MIB && fits.length < 4 * MIB, `${fits.length} bytes`);
    const { text } = await post(ATTACKER, "eth_simulateV1", simulationOf(code, 17));
    const { error } = JSON.parse(text);
    assert.deepEqual(error, { code: -32_003, message: `response is larger than ${SIMULATE.maxResponseBytes} bytes` });
    assert.equal(await used("executions"), 0);
  });
}

test("a simulation holds room for its result, and is refused without it", async (t) => {
  const { node, used, refused, post, open } = await start(t);
  node.faults.methods = ["eth_getStorageAt"];
  node.faults.answer = "hang";
  const simulate = (calls: number) => post(ATTACKER, "eth_simulateV1", simulationOf(READS_SLOT, calls));
  const [running] = [simulate(1), await node.asked("eth_getStorageAt")];
  assert.equal(await used("executions"), SIMULATE.maxResponseBytes);
  node.release();
  assert.match((await running).text, /"status":"0x1"/);
  assert.equal(await used("executions"), 0);
  // Each counts as bytes and as text. They leave less of the client's share than the result may need.
  const bytes = Math.floor((BUDGET / 2 - SIMULATE.maxResponseBytes + MIB) / 6);
  for (let index = 0; index < 3; index++) {
    open(ATTACKER, headOf(bytes)).write(Buffer.alloc(bytes - 1, 0x20));
  }
  await until(async () => (await used("requests")) > 2.9 * 2 * bytes, "the bodies are held");
  const { status, text } = await simulate(0);
  assert.equal(status, 503, text);
  assert.ok(text.includes(OVER_BUDGET));
  assert.equal(await refused("executions"), 1);
});
