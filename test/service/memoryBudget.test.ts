import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { until } from "../support/clients/until.ts";
import {
  ATTACKER,
  BODY_BYTES,
  BUDGET,
  headOf,
  MIB,
  OTHER,
  OVER_BUDGET,
  openWebSocket,
  start,
} from "./budgetedService.ts";

const PIECE_BYTES = 32 * 1024;
const PING_MS = 250;

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

test("only the pong to the ping keeps a WebSocket open", async (t) => {
  // Pings are sent by the test: a stall between two real ones would end any connection.
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { service } = await start(t, { webSocketPingMs: PING_MS });
  const [liar, honest] = await Promise.all([
    openWebSocket(t, service.url, ATTACKER),
    openWebSocket(t, service.url, OTHER),
  ]);
  honest.on("ping", (data) => honest.pong(data));
  liar.on("ping", () => liar.pong("another"));
  const closed = once(liar, "close");
  for (let pings = 0; pings < 3; pings++) {
    const pinged = once(honest, "ping");
    t.mock.timers.tick(PING_MS);
    await pinged;
    // It follows the pong.
    const answered = once(honest, "message");
    honest.send('{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}');
    await answered;
  }
  await closed;
});
