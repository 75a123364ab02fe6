import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";

const MIB = 1024 * 1024;
const BUDGET = 32 * MIB;
const BODY_BYTES = 5_200_000;
const LARGE_BYTES = 2_000_000;
/** Less than what counts alone. */
const SMALL_BYTES = 60_000;
const PIECE_BYTES = 32 * 1024;
/** Answers in the buffers of the kernel are not forebay's. */
const PIPELINED = 8;
const CALLED = `0x${"dd".repeat(20)}`;
/** This gas lets a loop run until the deadline on any machine. */
const SIMULATE = { timeoutMs: 1_000, maxResponseBytes: 4 * MIB, gasCap: 100_000_000_000 };
/** Code that returns 128 KiB. */
const RETURNS = "0x620200005ff3";
/** Code that logs 128 KiB. */
const LOGS = "0x620200005fa0";
const LOOP = "0x5b600056";
const OVER_BUDGET = "the server is over its memory budget";
const ATTACKER = "203.0.113.1";
const OTHER = "203.0.113.2";

const start = async (
  t: TestContext,
  server: {
    readonly writeTimeoutMs?: number;
    readonly webSocketPingMs?: number;
    readonly memoryBudgetBytes?: number;
  } = {},
) => {
  const large = `0x${"ab".repeat(LARGE_BYTES / 2)}`;
  const small = `0x${"ab".repeat(SMALL_BYTES / 2)}`;
  const node = await createFakeNode({
    handlers: {
      eth_getCode: (params) => (params[0] === CALLED ? "0x" : large),
      eth_getTransactionCount: () => "0x0",
      custom_large: () => large,
      custom_small: () => small,
    },
  });
  const service = await createService(
    { nodes: [{ url: node.url }], verify: "off", forks: "prague", simulate: SIMULATE },
    { server: { memoryBudgetBytes: BUDGET, ...server }, access: { trustedProxies: ["127.0.0.1"] } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  await untilFilled(service);
  const used = (kind: string) => metric(service.opsUrl, "forebay_memory_budget_used_bytes", `kind="${kind}"`);
  const refused = (kind: string) => metric(service.opsUrl, "forebay_memory_budget_refused_total", `kind="${kind}"`);
  const post = async (client: string, method: string, params: readonly unknown[] = []) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": client };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(service.url, { method: "POST", headers, body });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const open = (client: string, text: string): Socket => {
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(text.replaceAll("CLIENT", client));
    t.after(() => socket.destroy());
    return socket;
  };
  return { node, service, used, refused, post, open };
};

const headOf = (bytes: number): string =>
  `POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: CLIENT\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;

const getCode = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "eth_getCode",
  params: [`0x${"11".repeat(20)}`, "0x1"],
});

test("200 stalled bodies of 5.2 MB stay within the budget, and others are served", async (t) => {
  const { used, refused, post, open } = await start(t);
  const code = (digit: string) => post(OTHER, "eth_getBalance", [`0x${digit.repeat(40)}`, "0x1"]);
  await code("1");
  const replies = new Map<number, string>();
  for (let index = 0; index < 200; index++) {
    const socket = open(ATTACKER, headOf(BODY_BYTES));
    socket.on("data", (data) => replies.set(index, (replies.get(index) ?? "") + data));
    socket.write(Buffer.alloc(MIB, 0x20));
  }
  const refusals = () => [...replies.values()].filter((text) => text.endsWith("}}")).length;
  const isSettled = async () => refusals() + Math.floor((await used("requests")) / MIB) >= 200;
  await until(isSettled, "each body is held or refused");
  // A client alone may hold as much as is free: half.
  assert.ok((await used("requests")) <= BUDGET / 2, `${await used("requests")} bytes`);
  assert.ok((await refused("requests")) > 0);
  for (const reply of replies.values()) {
    assert.match(reply, /^HTTP\/1.1 503 /);
    assert.match(reply, /\r\nRetry-After: 1\r\n/);
    assert.ok(reply.includes(OVER_BUDGET));
  }
  // A hit, and a request to the node.
  assert.equal((await code("1")).headers.get("cache-status")?.includes("hit"), true);
  assert.equal((await code("2")).status, 200);
  assert.equal((await post(OTHER, "custom_large")).status, 200);
});

test("a body whose length exceeds the client's share is refused before it arrives, and counted", async (t) => {
  const { used, refused, open } = await start(t, { memoryBudgetBytes: MIB });
  const [reply] = (await once(open(ATTACKER, headOf(BODY_BYTES)), "data")) as [Buffer];
  assert.match(reply.toString(), /^HTTP\/1.1 503 /);
  assert.equal(await used("requests"), 0);
  assert.equal(await refused("requests"), 1);
});

test("bodies that a client announces count against that client before they arrive, and no more once it leaves", async (t) => {
  const { used, post, open } = await start(t);
  const sendLarge = async (client: string) => (await post(client, "custom_large", ["a".repeat(BODY_BYTES)])).status;
  const announced = Array.from({ length: 3 }, () => open(ATTACKER, headOf(BODY_BYTES)));
  const [reply] = (await once(open(ATTACKER, headOf(BODY_BYTES)), "data")) as [Buffer];
  assert.match(reply.toString(), /^HTTP\/1.1 503 /);
  assert.equal(await used("requests"), 0);
  assert.equal(await sendLarge(OTHER), 200);
  assert.equal(await sendLarge(ATTACKER), 503);
  announced[0]?.destroy();
  await until(async () => (await sendLarge(ATTACKER)) === 200, "the room of the connection that ended is free");
});

test("new work of a client above its share is refused early, and its hits are served", async (t) => {
  const { node, used, post, open } = await start(t, { memoryBudgetBytes: MIB });
  const balance = (digit: string) => post(ATTACKER, "eth_getBalance", [`0x${digit.repeat(40)}`, "0x1"]);
  await balance("1");
  let isFull = false;
  for (let held = 0; !isFull; held += PIECE_BYTES) {
    const socket = open(ATTACKER, headOf(2 * PIECE_BYTES - 1));
    socket.once("data", () => {
      isFull = true;
    });
    socket.write(Buffer.alloc(PIECE_BYTES, 0x20));
    await until(async () => isFull || (await used("requests")) > held, "the bytes are counted or refused");
  }
  const asked = node.count("eth_getBalance");
  const rejected = await balance("3");
  assert.equal(rejected.status, 503);
  assert.equal(rejected.headers.get("retry-after"), "1");
  assert.ok(rejected.text.includes(OVER_BUDGET));
  assert.equal(node.count("eth_getBalance"), asked);
  assert.equal((await balance("1")).status, 200);
});

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
  const { used, open } = await start(t, { writeTimeoutMs: 200 });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "custom_large", params: [] });
  const socket = open(ATTACKER, (headOf(body.length) + body).repeat(PIPELINED));
  socket.pause();
  await until(async () => (await used("responses")) > 0, "responses wait");
  await until(async () => (await used("responses")) === 0, "the connection is closed");
});

const openWebSocket = async (t: TestContext, url: string, client: string) => {
  const socket = new WebSocket(url.replace("http", "ws"), {
    headers: { "x-forwarded-for": client },
    autoPong: false,
  });
  t.after(() => socket.terminate());
  await once(socket, "open");
  return socket;
};

test("WebSockets that do not read 63 answers of 2 MB hold few of them, and are closed by the write timeout", async (t) => {
  const { service, used, node } = await start(t, { writeTimeoutMs: 2_000 });
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

const batchOf = (method: string, calls: number): string =>
  JSON.stringify(Array.from({ length: calls }, (_, id) => ({ jsonrpc: "2.0", id, method, params: [id] })));

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

test("ten clients with a thousand filters each do not lock out another one, or their own polls", async (t) => {
  // The limit of filters is reached before that of memory.
  const { service } = await start(t, { memoryBudgetBytes: 2 * BUDGET });
  const clients = Array.from({ length: 10 }, (_, at) => `2001:db8:${at}::1`);
  const send = async (client: string, calls: readonly object[]) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": client };
    const response = await fetch(service.url, { method: "POST", headers, body: JSON.stringify(calls) });
    const answers: readonly { readonly result?: unknown }[] = Object(await response.json());
    return answers.map(({ result }) => result);
  };
  const create = (client: string, count: number) =>
    send(
      client,
      Array.from({ length: count }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_newBlockFilter", params: [] })),
    );
  const poll = async (client: string, id: unknown) =>
    (await send(client, [{ jsonrpc: "2.0", id: 1, method: "eth_getFilterChanges", params: [id] }]))[0];
  const ids: unknown[][] = [];
  for (const client of clients) {
    ids.push(await create(client, 1_000));
  }
  assert.ok(ids.flat().every((id) => typeof id === "string"));
  const [own] = await create(OTHER, 1);
  assert.deepEqual(await poll(OTHER, own), []);
  // The oldest filter of one of the ten made room.
  assert.equal(await poll("2001:db8:0::1", ids[0]?.[0]), undefined);
  assert.deepEqual(await poll("2001:db8:0::1", ids[0]?.[1]), []);
  // Another /64 of the same site is not another client.
  assert.deepEqual(await create("2001:db8:1:7::1", 1), [undefined]);
});

test("a subscription counts its size in memory, and nothing after its end", async (t) => {
  const { service, used } = await start(t);
  const socket = await openWebSocket(t, service.url, ATTACKER);
  const address = Array.from({ length: 500 }, (_, at) => `0x${at.toString(16).padStart(40, "a")}`);
  const topics = [Array.from({ length: 500 }, (_, at) => `0x${at.toString(16).padStart(64, "b")}`)];
  const params = ["logs", { address, topics }];
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params }));
  await once(socket, "message");
  // Measured: 510 to 700 bytes for each address and each topic.
  assert.ok((await used("subscriptions")) > 600_000, `${await used("subscriptions")} bytes`);
  socket.terminate();
  await until(async () => (await used("subscriptions")) === 0, "the subscription has ended");
});

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
  const { used, refused, post, open } = await start(t);
  const simulate = (calls: number) => post(ATTACKER, "eth_simulateV1", simulationOf(LOOP, calls));
  const loop = simulate(1);
  await until(async () => (await used("executions")) === SIMULATE.maxResponseBytes, "the room is held");
  assert.match((await loop).text, /timeout|aborted/);
  assert.equal(await used("executions"), 0);
  const bytes = BODY_BYTES / 2;
  for (let index = 0; index < 3; index++) {
    open(ATTACKER, headOf(bytes)).write(Buffer.alloc(bytes - 1, 0x20));
  }
  // Each counts as bytes and as text.
  await until(async () => (await used("requests")) > 2.9 * 2 * bytes, "the bodies are held");
  const { status, text } = await simulate(0);
  assert.equal(status, 503, text);
  assert.ok(text.includes(OVER_BUDGET));
  assert.equal(await refused("executions"), 1);
});

test("only the pong to the ping keeps a WebSocket open", async (t) => {
  const { service } = await start(t, { webSocketPingMs: 500 });
  const [liar, honest] = await Promise.all([
    openWebSocket(t, service.url, ATTACKER),
    openWebSocket(t, service.url, OTHER),
  ]);
  let pings = 0;
  honest.on("ping", (data) => {
    pings++;
    honest.pong(data);
  });
  liar.on("ping", () => liar.pong("another"));
  await once(liar, "close");
  await until(() => pings >= 3, "the other connection gets pings");
  assert.equal(honest.readyState, WebSocket.OPEN);
});
