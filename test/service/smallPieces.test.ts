import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import type { WebSocket } from "ws";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { forwardTo } from "../support/fakes/front.ts";
import { listen } from "../support/servers/ports.ts";
import { createService } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";
import { ATTACKER, MIB, openWebSocket, start } from "./budgetedService.ts";

/** What arrives in pieces of one byte must not cost more than MAX_COST_BYTES: as objects it costs 200 times as much. */
const PIECES = 150_000;
/** Less than a body may have. */
const HTTP_PIECES = 3_900;
const MAX_COST_BYTES = 8 * MIB;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

const heldBytes = (): number => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

/** HTTP chunks of one byte each. */
const inChunks = (text: string): string => text.replaceAll(/./gs, "1\r\n$&\r\n");

const CHUNKED =
  "POST PATH HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: CLIENT\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

const CALL = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "eth_getBalance",
  params: [`0x${"1".repeat(40)}`, "0x1"],
});

test("a body in chunks of one byte costs its bytes, and is answered; one in more pieces than it can need is refused", async (t) => {
  const { used, open } = await start(t);
  const before = heldBytes();
  const sockets = Array.from({ length: 30 }, () => open(ATTACKER, CHUNKED.replace("PATH", "/")));
  for (const socket of sockets) {
    socket.write(inChunks(" ".repeat(HTTP_PIECES)));
  }
  await until(async () => (await used("requests")) >= 30 * 2 * HTTP_PIECES, "the bodies are held");
  const cost = heldBytes() - before;
  assert.ok(cost < MAX_COST_BYTES, `${cost} bytes`);
  const [first, second] = sockets;
  first?.write(`${inChunks(CALL)}0\r\n\r\n`);
  second?.write(inChunks(" ".repeat(2 * HTTP_PIECES)));
  const replies = await Promise.all([first, second].map((socket) => socket && once(socket, "data")));
  assert.match(String(replies[0]), /^HTTP\/1.1 200 .*"result"/s);
  assert.match(String(replies[1]), /^HTTP\/1.1 400 .*body arrives in too many pieces/s);
  assert.ok(second && !second.destroyed);
  await once(second, "close");
});

test("a body below a pass-through path in chunks of one byte is read as JSON-RPC", async (t) => {
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url }], passthrough: node.url });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const body = new ReadableStream({
    start: (controller) => {
      for (const byte of Buffer.from(` ${CALL}`)) {
        controller.enqueue(Uint8Array.of(byte));
      }
      controller.close();
    },
  });
  const response = await fetch(`${service.url}/below`, { method: "POST", body, duplex: "half" });
  assert.equal(response.status, 404);
  assert.match(await response.text(), /no JSON-RPC is served or passed through/);
});

/** Sends a message in frames of one byte each. */
const sendInFrames = (socket: WebSocket, text: string, isWhole: boolean): void => {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at++) {
    socket.send(bytes.subarray(at, at + 1), { binary: false, fin: isWhole && at === bytes.length - 1 });
  }
};

test("frames of one byte count by what they cost, their number is limited, and a few are answered", async (t) => {
  const { service, used, refused } = await start(t);
  const socket = await openWebSocket(t, service.url, ATTACKER);
  sendInFrames(socket, CALL, true);
  assert.match(String((await once(socket, "message"))[0]), /"result"/);
  sendInFrames(socket, " ".repeat(3_500), false);
  await until(async () => (await used("requests")) > 500_000, "the frames count");
  sendInFrames(socket, CALL, true);
  assert.match(String((await once(socket, "message"))[0]), /"result"/);
  await until(async () => (await used("requests")) === 0, "the message does not count any more");
  const closed = once(socket, "close");
  sendInFrames(socket, " ".repeat(5_000), false);
  await closed;
  assert.equal(await refused("requests"), 0);
});

test("clients that send frames of one byte stay within the budget", async (t) => {
  const { service, used } = await start(t, { memoryBudgetBytes: 3 * MIB });
  const sockets = await Promise.all(Array.from({ length: 4 }, () => openWebSocket(t, service.url, ATTACKER)));
  const closed = Promise.race(sockets.map((socket) => once(socket, "close")));
  for (const socket of sockets) {
    socket.on("error", () => undefined);
    sendInFrames(socket, " ".repeat(3_500), false);
  }
  await closed;
  const held = await used("requests");
  assert.ok(held <= 3 * MIB, `${held} bytes`);
});

/** A node that answers `custom_drip` with this result, in chunks of one byte, and ends the answer on demand. */
const startDrippingNode = async (t: TestContext, result: string) => {
  const node = await createFakeNode();
  const end = Promise.withResolvers<void>();
  const front = createServer((request, response) => {
    void (async () => {
      const body = String(Buffer.concat(await request.toArray()));
      const { id = null, method = "" }: { id?: unknown; method?: string } = Object(JSON.parse(body));
      if (method !== "custom_drip") {
        response.end((await forwardTo(node.url, body)).text);
        return;
      }
      response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
      const { socket } = response;
      assert.ok(socket);
      socket.write(inChunks(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":"${result}"`));
      await end.promise;
      socket.write(`${inChunks("}")}0\r\n\r\n`);
    })().catch(() => response.destroy());
  });
  const port = await listen(front);
  t.after(async () => {
    front.closeAllConnections();
    front.close();
    await node.close();
  });
  return { url: `http://127.0.0.1:${port}`, end: end.resolve };
};

test("an answer of a node in chunks of one byte costs its bytes, and is served", async (t) => {
  const result = "x".repeat(PIECES);
  const node = await startDrippingNode(t, result);
  const service = await createService({ nodes: [{ url: node.url }], verify: "off", forks: "prague" });
  t.after(() => service.close());
  await untilFilled(service);
  const before = heldBytes();
  const answered = rpc(service.url, "custom_drip", []);
  const used = () => metric(service.opsUrl, "forebay_memory_budget_used_bytes", 'kind="upstream"');
  await until(async () => (await used()) >= PIECES, "the answer is held");
  const cost = heldBytes() - before;
  assert.ok(cost < MAX_COST_BYTES, `${cost} bytes`);
  node.end();
  assert.equal((await answered).body.result, result);
});

test("keys of an issuer in chunks of one byte are read", async (t) => {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const keys = [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" }];
  const issuer = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    response.socket?.write(`${inChunks(JSON.stringify({ keys, padding: "x".repeat(20_000) }))}0\r\n\r\n`);
  });
  const port = await listen(issuer);
  const jwt = { jwksUrl: `http://127.0.0.1:${port}/keys`, issuer: "https://login.example" };
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url }] }, { access: { jwt } });
  t.after(async () => {
    await service.close();
    await node.close();
    issuer.closeAllConnections();
    issuer.close();
  });
  const token = await new SignJWT({ sub: "one" })
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .setIssuer("https://login.example")
    .setExpirationTime("1h")
    .sign(privateKey);
  const { status } = await rpc(service.url, "eth_chainId", [], { authorization: `Bearer ${token}` });
  assert.equal(status, 200);
});
