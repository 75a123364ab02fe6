import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { Registry } from "prom-client";
import { Agent, request } from "undici";
import { createOpsServer } from "../../src/admin/opsServer.ts";
import { drain } from "../../src/http/drain.ts";
import type { Reply } from "../../src/jsonrpc/call.ts";
import { askUntilRefused } from "../support/clients/sharedPort.ts";
import { until } from "../support/clients/until.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";

const body = '{"jsonrpc":"2.0","id":1,"method":"m"}';
const post = { method: "POST", headers: { "content-type": "application/json" }, body } as const;

const status = async (url: string): Promise<number> => {
  const response = await request(url, { dispatcher: new Agent() });
  await response.body.dump();
  return response.statusCode;
};

test("the ops port on a loopback address refuses the names of other sites", async (t) => {
  const ops = await createOpsServer({
    host: "127.0.0.1",
    port: 0,
    registry: new Registry(),
    readiness: () => ({ status: 200, body: {} }),
    usage: () => "{}",
    config: () => "{}",
    onError: () => assert.fail(),
  });
  t.after(() => ops.close());
  const statusOf = async (host: string): Promise<number> => {
    const url = `http://127.0.0.1:${ops.port}/config`;
    const response = await request(url, { dispatcher: new Agent(), headers: { host } });
    await response.body.dump();
    return response.statusCode;
  };
  for (const host of ["localhost", `localhost:${ops.port}`, `127.0.0.1:${ops.port}`, "[::1]:9545", "10.0.0.7"]) {
    assert.equal(await statusOf(host), 200, host);
  }
  for (const host of ["attacker.example", `attacker.example:${ops.port}`, "127.0.0.1.attacker.example"]) {
    assert.equal(await statusOf(host), 421, host);
  }
});

test("draining is unready at once, finishes requests in flight, then closes the listener", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Reply>();
  const slow = async (): Promise<Reply> => {
    asked.resolve();
    return answer.promise;
  };
  const server = await startHttpServer(createTestEndpoint({ methods: { slow } }));
  const inFlight = request(server.url, { ...post, body: body.replace('"m"', '"slow"') });
  const idle = connect(server.port, "127.0.0.1");
  await Promise.all([asked.promise, once(idle, "connect")]);

  let ready = true;
  const delay = Promise.withResolvers<void>();
  const done = drain({
    server,
    delay: () => delay.promise,
    timeoutMs: 35_000,
    markUnready: () => {
      ready = false;
    },
  });
  assert.equal(ready, false);
  const during = await request(server.url, post);
  assert.equal(during.statusCode, 200);
  assert.equal(during.headers.connection, "close");
  await during.body.dump();

  delay.resolve();
  await once(idle, "close");
  await assert.rejects(request(server.url, { ...post, dispatcher: new Agent() }), { code: "ECONNREFUSED" });
  answer.resolve({ body: Buffer.from("1") });
  assert.equal(await (await inFlight).body.text(), '{"jsonrpc":"2.0","id":1,"result":1}');
  await done;
});

test("connections that do not end in time are closed", async () => {
  const asked = Promise.withResolvers<AbortSignal>();
  const server = await startHttpServer({
    handle: (_, { signal }) => {
      asked.resolve(signal);
      return new Promise(() => {});
    },
  });
  const inFlight = assert.rejects(request(server.url, post));
  const signal = await asked.promise;
  await drain({ server, delay: async () => {}, timeoutMs: 1, markUnready: () => {} });
  await inFlight;
  if (!signal.aborted) {
    await once(signal, "abort");
  }
});

test("a request sent on an open connection while the listener closes is answered", async () => {
  const server = await startHttpServer(createTestEndpoint({ methods: {} }));
  const socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  const answer = once(socket, "data");
  const done = drain({ server, delay: async () => {}, timeoutMs: 35_000, markUnready: () => {} });
  const isRefused = () =>
    status(server.url).then(
      () => false,
      ({ code }) => code === "ECONNREFUSED",
    );
  await until(isRefused, "the listener is closed");
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const text = String(await Promise.race([answer, once(socket, "close")]));
  assert.match(text, /^HTTP\/1.1 200 OK\r\n(?:.+\r\n)*Connection: close\r\n/);
  await done;
});

test("connections that wait to be accepted when draining ends are answered", async () => {
  const server = await startHttpServer(createTestEndpoint({ methods: {} }));
  const waiting = Array.from({ length: 40 }, () => connect(server.port, "127.0.0.1"));
  const answers = waiting.map(async (socket) => {
    socket.write(
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    return String(await once(socket, "data")).split("\r\n", 1)[0];
  });
  const done = drain({ server, delay: async () => {}, timeoutMs: 35_000, markUnready: () => {} });
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(["HTTP/1.1 200 OK"]));
  await done;
});

test("clients that connect again after each response get a response or a refused connection", async () => {
  const server = await startHttpServer(createTestEndpoint({ methods: {} }));
  const delay = Promise.withResolvers<void>();
  let answered = 0;
  const outcomes = askUntilRefused(server.port, 40, () => {
    answered++;
    if (answered === 400) {
      delay.resolve();
    }
  });
  await drain({ server, delay: () => delay.promise, timeoutMs: 35_000, markUnready: () => {} });
  assert.deepEqual(await outcomes, new Set(["ECONNREFUSED"]));
});
