import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

/** HTTP requests of clients that the node gets at a time: one in 16 is left for forebay itself. */
const CONCURRENCY = 16;
const PLACES = 15;
const METHOD = "custom_read";

const start = async (t: TestContext) => {
  const node = await createFakeNode({ handlers: { [METHOD]: ([name]) => name } });
  const service = await createService(
    { nodes: [{ url: node.url, concurrency: CONCURRENCY }], verify: "off" },
    { access: { trustedProxies: ["127.0.0.1"] } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  Object.assign(node.faults, { answer: "hang", methods: [METHOD] });
  /** The calls that reached the node, in order. */
  const arrived = (): readonly string[] =>
    node.requests.flatMap(({ body }) => (body.includes(METHOD) ? [String(JSON.parse(body).params[0])] : []));
  const post = (client: string, name: string): string => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: name, method: METHOD, params: [name] });
    return [
      "POST / HTTP/1.1",
      "Host: a",
      "Content-Type: application/json",
      `X-Forwarded-For: ${client}`,
      `Content-Length: ${body.length}`,
      "",
      body,
    ].join("\r\n");
  };
  /** Opens a connection and sends the calls without waiting for responses. */
  const pipeline = (client: string, names: readonly string[]) => {
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.write(names.map((name) => post(client, name)).join(""));
    t.after(() => socket.destroy());
    return { results: () => [...text.matchAll(/"result":"(\w+)"/g)].map(([, name]) => name) };
  };
  return { node, service, arrived, pipeline };
};

const named = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

test("one connection with pipelined calls does not take the places of other clients and connections", async (t) => {
  const { node, service, arrived, pipeline } = await start(t);
  const greedy = pipeline("203.0.113.1", named("greedy", 5_000));
  await until(() => arrived().length === PLACES, "the greedy connection has all places");
  const other = pipeline("203.0.113.2", named("other", 3));
  const second = pipeline("203.0.113.1", named("second", 3));
  const inFlight = () => metric(service.opsUrl, "forebay_requests_in_flight");
  await until(async () => (await inFlight()) > PLACES + 6, "the calls wait");
  for (let released = PLACES; other.results().length < 3 || second.results().length < 3; released = arrived().length) {
    node.release();
    await until(
      () => arrived().length > released || (other.results().length === 3 && second.results().length === 3),
      "more calls arrive",
    );
  }
  const order = arrived();
  // Each client has every second turn, and each connection of the greedy client every second turn of these.
  assert.ok(order.indexOf("other2") < PLACES + 6, `${order.indexOf("other2")}`);
  assert.ok(order.indexOf("second2") < PLACES + 15, `${order.indexOf("second2")}`);
  assert.deepEqual(greedy.results().slice(0, 3), ["greedy0", "greedy1", "greedy2"]);
});
