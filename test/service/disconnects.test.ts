import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const CLIENTS = 8;
const call = (id: number, address = id) => ({
  jsonrpc: "2.0",
  id,
  method: "eth_getBalance",
  params: [`0x${address.toString(16).padStart(40, "0")}`, "0x1"],
});

test("clients that disconnect during single calls, batches and WebSocket calls cause no error lines", async (t) => {
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url }] });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const { log } = service.telemetry;
  const lines = [t.mock.method(log, "warn"), t.mock.method(log, "error")];
  Object.assign(node.faults, { answer: "hang", methods: ["eth_getBalance"] });
  const port = Number(new URL(service.url).port);
  const left = () => metric(service.opsUrl, "forebay_requests_total", 'outcome="left"');

  for (let client = 0; client < CLIENTS; client++) {
    const calls = [call(3 * client), call(3 * client + 1)];
    const body = JSON.stringify(client % 2 === 0 ? calls : calls[0]);
    const asked = node.asked("eth_getBalance");
    const socket = connect(port, "127.0.0.1");
    socket.write(
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
    await asked;
    const broken = node.broken();
    socket.resetAndDestroy();
    await broken;

    const askedBySocket = node.asked("eth_getBalance");
    const webSocket = await connectSocket(service.url);
    webSocket.socket.send(JSON.stringify(call(3 * client + 2)));
    await askedBySocket;
    const brokenBySocket = node.broken();
    webSocket.socket.terminate();
    await once(webSocket.socket, "close");
    await brokenBySocket;
  }
  // A batch of two counts twice.
  await until(async () => (await left()) === CLIENTS * 2.5, "all calls are counted");
  assert.equal((await rpc(service.url, "eth_chainId")).status, 200);
  assert.deepEqual(
    lines.flatMap(({ mock }) => mock.calls.map(({ arguments: [fields, text] }) => [fields, text])),
    [],
  );
});
