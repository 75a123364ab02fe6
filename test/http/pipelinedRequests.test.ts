import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { EndpointResponse } from "../../src/http/endpoint.ts";
import { until } from "../support/clients/until.ts";
import { call, startHttpServer } from "../support/servers/httpServer.ts";

const COUNT = 300;
const MAX_IN_FLIGHT = 16;
const BODY = call("one");
const POST = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
const UPGRADE =
  "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

const answer = (text: string): EndpointResponse => ({
  status: 200,
  chunks: [Buffer.from(text)],
  cacheStatus: "forebay; hit",
});

const countResponses = (text: string): number => text.split("HTTP/1.1 200").length - 1;

/** Reads until `isEnd` accepts the text, or until the connection ends. */
const readUntil = async (socket: ReturnType<typeof connect>, isEnd: (text: string) => boolean): Promise<string> => {
  let text = "";
  for await (const chunk of socket) {
    text += chunk;
    if (isEnd(text)) {
      break;
    }
  }
  return text;
};

test("pipelined calls are answered in order", async (t) => {
  let handled = 0;
  const server = await startHttpServer({ handle: () => answer(`<${handled++}>`) });
  t.after(() => server.close(0));
  const socket = connect(server.port, "127.0.0.1");
  socket.write(POST.repeat(COUNT));
  const text = await readUntil(socket, (read) => read.includes(`<${COUNT - 1}>`));
  assert.deepEqual(
    [...text.matchAll(/<(\d+)>/g)].map(([, number]) => Number(number)),
    Array.from({ length: COUNT }, (_, at) => at),
  );
});

test("at most 16 pipelined calls of a connection are in flight, and the rest follow", async (t) => {
  const waiting: (() => void)[] = [];
  const server = await startHttpServer({
    handle: () => new Promise((resolve) => waiting.push(() => resolve(answer("1")))),
  });
  t.after(() => server.close(0));
  const socket = connect(server.port, "127.0.0.1");
  socket.write(POST.repeat(COUNT));
  const reading = readUntil(socket, (read) => countResponses(read) === COUNT);
  let ended = 0;
  while (ended < COUNT) {
    await turn();
    assert.ok(waiting.length <= MAX_IN_FLIGHT, `${waiting.length} are in flight`);
    if (waiting.length === Math.min(MAX_IN_FLIGHT, COUNT - ended)) {
      ended++;
      waiting.shift()?.();
    }
  }
  assert.equal(countResponses(await reading), COUNT);
});

test("a client that closes its side after pipelined calls gets all responses", async (t) => {
  const server = await startHttpServer({ handle: () => answer("1") });
  t.after(() => server.close(0));
  const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(POST.repeat(COUNT));
  assert.equal(countResponses(await readUntil(socket, () => false)), COUNT);
});

test("calls behind others of a connection that broke are not handled", async (t) => {
  let handled = 0;
  const server = await startHttpServer({
    handle: (_, { caller: { connection } }) => {
      handled++;
      (connection as IncomingMessage["socket"]).destroy();
      return answer("1");
    },
  });
  t.after(() => server.close(0));
  const client = connect(server.port, "127.0.0.1");
  client.on("error", () => {});
  client.write(POST.repeat(COUNT));
  await once(client, "close");
  assert.ok(handled <= 2, `${handled} were handled`);
  assert.match(await server.registry.metrics(), /^forebay_requests_in_flight 0$/m);
});

const later = async (): Promise<EndpointResponse> => {
  await sleep(1);
  return answer("1");
};

for (const { name, handle } of [
  { name: "calls that are answered at once", handle: () => answer("1") },
  { name: "calls that wait", handle: later },
]) {
  test(`a WebSocket behind ${name} is refused after their responses, and nothing remains`, async (t) => {
    let isUpgraded = false;
    const server = await startHttpServer({
      handle,
      upgrade: () => {
        isUpgraded = true;
      },
    });
    t.after(() => server.close(0));
    for (const count of [1, 3, COUNT]) {
      const socket = connect(server.port, "127.0.0.1");
      socket.write(POST.repeat(count) + UPGRADE);
      const text = await readUntil(socket, () => false);
      assert.equal(countResponses(text), count);
      const last = text.slice(text.lastIndexOf("HTTP/1.1"));
      assert.match(last, /^HTTP\/1.1 400 Bad Request.*Connection: close.*must wait for the responses/s);
    }
    assert.equal(isUpgraded, false);
    const broken = connect(server.port, "127.0.0.1");
    broken.on("error", () => {});
    broken.write(POST.repeat(COUNT) + UPGRADE);
    await once(broken, "data");
    broken.resetAndDestroy();
    await until(
      async () => /^forebay_requests_in_flight 0$/m.test(await server.registry.metrics()),
      "no request is in flight",
    );
  });
}

test("a WebSocket opens on a connection whose calls have their responses", async (t) => {
  const server = await startHttpServer({
    handle: () => answer("1"),
    upgrade: (_request, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      socket.on("data", (chunk) => socket.write(`<${chunk}>`)).on("end", () => socket.end());
    },
  });
  const socket = connect(server.port, "127.0.0.1");
  t.after(async () => {
    socket.destroy();
    await server.close(0);
  });
  socket.write(POST.repeat(COUNT));
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  const read = (isEnd: () => boolean) => until(isEnd, "the text has arrived");
  await read(() => countResponses(text) === COUNT);
  socket.write(UPGRADE);
  await read(() => text.includes("HTTP/1.1 101"));
  socket.write("echo");
  await read(() => text.endsWith("<echo>"));
});

test("while it drains, all calls that were read are answered, and the last response closes the connection", async (t) => {
  let handled = 0;
  const server = await startHttpServer({
    handle: () => {
      handled++;
      if (handled === MAX_IN_FLIGHT) {
        server.startDraining();
      }
      return later();
    },
  });
  t.after(() => server.close(0));
  const socket = connect(server.port, "127.0.0.1");
  socket.write(POST.repeat(COUNT));
  const text = await readUntil(socket, () => false);
  assert.equal(countResponses(text), COUNT);
  assert.equal(text.split("Connection: close").length, 2);
});
