import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { forwardTo, startFront } from "../support/fakes/front.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";

interface Item {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

const address = (n: number): string => `0x${n.toString(16).padStart(40, "0")}`;
const item = (
  n: number,
  method = "eth_getBalance",
  params: readonly unknown[] = [address(n), "latest"],
): Item & object => Object.assign({ jsonrpc: "2.0" }, { id: n, method, params });
const items = (count: number): readonly Item[] => Array.from({ length: count }, (_, n) => item(n + 1));

/** Sends one batch. Returns the responses in order. */
const sendBatch = async (url: string, batch: readonly Item[], signal?: AbortSignal) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(batch),
    ...(signal && { signal }),
  });
  return (await response.json()) as { id: number; result?: string; error?: { code: number; message: string } }[];
};

/** The HTTP requests with a call about one of these addresses. */
const forwarded = (node: FakeNode): readonly Item[][] =>
  node.requests
    .map(({ body }) => [JSON.parse(body)].flat() as Item[])
    .filter((calls) => calls.some(({ params }) => /^0x0{37}(?!000)/.test(String(params[0]))));

type Answer = (body: string, forward: (body: string) => Promise<string>) => Promise<string>;

interface Rig {
  readonly node: FakeNode;
  readonly service: Service;
}

/**
 * Stops the clock, so that a slow machine does not divide a batch into several turns of the event loop. No duration of a request
 * is known then, so that a batch is late after a second (`FIRST_LATE_MS`), not after 100 ms. After a late one, batches are smaller.
 */
const stopClock = (t: TestContext): void => {
  const nowMs = performance.now();
  t.mock.method(performance, "now", () => nowMs);
};

/** A service whose only node is a fake one, behind a front if `answer` is given. Its clock stands. */
const start = async (
  t: TestContext,
  { answer, batch }: { readonly answer?: Answer; readonly batch?: ServiceChain["nodes"][number]["batch"] } = {},
): Promise<Rig> => {
  stopClock(t);
  const node = await createFakeNode({
    handlers: {
      // Each address has its own balance.
      eth_getBalance: ([owner]) => `0x${BigInt(String(owner)).toString(16)}`,
      eth_estimateGas: () => "0x5208",
    },
  });
  t.after(() => node.close());
  const forward = async (body: string): Promise<string> => (await forwardTo(node.url, body)).text;
  const front = answer && (await startFront((body) => answer(body, forward)));
  if (front) {
    t.after(() => front.close());
  }
  const service = await createService({
    nodes: [{ url: front?.url ?? node.url, ...(batch && { batch }) }],
    verify: "cheap",
    pending: { mode: "node" },
    blockTimeMs: 60_000,
  });
  t.after(() => service.close());
  await untilFilled(service);
  // The first read by hash probes the node.
  await rpc(service.url, "eth_getBalance", [address(0), "latest"]);
  return { node, service };
};

const assertAnswered = (responses: Awaited<ReturnType<typeof sendBatch>>, count: number): void => {
  assert.deepEqual(
    responses.map(({ id, result, error }) => [id, result ?? error]),
    items(count).map(({ id }) => [id, `0x${Number(id).toString(16)}`]),
  );
};

test("the reads of one client batch are one request to the node, up to maxCalls", async (t) => {
  const { node, service } = await start(t, { batch: { maxCalls: 30 } });
  const ofMethod = () => metric(service.opsUrl, "forebay_upstream_calls_total", 'method="eth_getBalance"');
  const callsBefore = await ofMethod();
  assertAnswered(await sendBatch(service.url, items(20)), 20);
  assert.deepEqual(
    forwarded(node).map(({ length }) => length),
    [20],
  );
  assert.equal((await ofMethod()) - callsBefore, 20);
  const more = Array.from({ length: 40 }, (_, n) => item(n + 100));
  await sendBatch(service.url, more);
  assert.deepEqual(
    forwarded(node)
      .slice(1)
      .map(({ length }) => length),
    [20, 20],
  );
});

test("with batches of one, each call is a request of its own", async (t) => {
  const { node, service } = await start(t, { batch: { maxCalls: 1 } });
  assertAnswered(await sendBatch(service.url, items(5)), 5);
  assert.equal(forwarded(node).length, 5);
});

test("writes, slow methods and methods outside the table never share a request", async (t) => {
  const { node, service } = await start(t);
  const raw = `0x${"0".repeat(39)}1`;
  await sendBatch(service.url, [
    item(1),
    item(2),
    item(3, "eth_sendRawTransaction", [raw]),
    item(4, "eth_estimateGas", [{ to: address(4) }, "latest"]),
    item(5, "custom_read", [address(5)]),
  ]);
  const shared = node.requests
    .map(({ body }) => [JSON.parse(body)].flat() as Item[])
    .filter(({ length }) => length > 1);
  const methods = new Set(shared.flatMap((calls) => calls.map(({ method }) => method)));
  assert.ok(methods.has("eth_getBalance"));
  for (const alone of ["eth_sendRawTransaction", "eth_estimateGas", "custom_read"]) {
    assert.ok(!methods.has(alone), alone);
    assert.equal(node.count(alone), 1, alone);
  }
});

test("a node that refuses batches answers each call, and gets no further batch", async (t) => {
  const { node, service } = await start(t);
  node.faults.refusesBatches = true;
  assertAnswered(await sendBatch(service.url, items(8)), 8);
  const requests = forwarded(node).length;
  assert.equal(requests, 9);
  await sendBatch(
    service.url,
    Array.from({ length: 8 }, (_, n) => item(n + 50)),
  );
  assert.equal(forwarded(node).length, requests + 8);
});

test("a node with a smaller limit gets smaller batches from then on", async (t) => {
  const sizes: number[] = [];
  let isLimited = false;
  const { service } = await start(t, {
    answer: async (body, forward) => {
      const calls: unknown = JSON.parse(body);
      if (isLimited && Array.isArray(calls) && calls.length > 5) {
        sizes.push(calls.length);
        return '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}';
      }
      return forward(body);
    },
  });
  isLimited = true;
  assertAnswered(await sendBatch(service.url, items(20)), 20);
  const refused = sizes.length;
  assert.ok(refused >= 2);
  assertAnswered(await sendBatch(service.url, items(20)), 20);
  const fresh = Array.from({ length: 20 }, (_, n) => item(n + 200));
  await sendBatch(service.url, fresh);
  assert.equal(sizes.length, refused);
});

test("an item that the response lacks is sent again singly, and responses may have any order", async (t) => {
  const singles: Item[] = [];
  const { service } = await start(t, {
    answer: async (body, forward) => {
      const calls: Item | Item[] = JSON.parse(body);
      const text = await forward(body);
      if (!Array.isArray(calls)) {
        singles.push(calls);
        return text;
      }
      const responses: { id: number }[] = JSON.parse(text);
      return JSON.stringify(calls.length === 6 ? responses.toReversed().filter(({ id }) => id !== 2) : responses);
    },
  });
  singles.length = 0;
  assertAnswered(await sendBatch(service.url, items(6)), 6);
  // forebay itself may ask the node for its pending block meanwhile.
  const balances = singles.filter(({ method }) => method === "eth_getBalance");
  assert.deepEqual(
    balances.map(({ params }) => params[0]),
    [address(3)],
  );
});

test("the error of one item is its own", async (t) => {
  const { service } = await start(t, {
    answer: async (body, forward) => {
      const response: unknown = JSON.parse(await forward(body));
      if (!Array.isArray(response) || !body.includes(address(2))) {
        return JSON.stringify(response);
      }
      const error = { code: 3, message: "execution reverted: no", data: "0x08" };
      return JSON.stringify(response.with(1, { jsonrpc: "2.0", id: response[1].id, error }));
    },
  });
  const responses = await sendBatch(service.url, items(3));
  assert.deepEqual(
    responses.map(({ result, error }) => result ?? error?.message),
    ["0x1", "execution reverted: no", "0x3"],
  );
});

test("a slow item does not delay the other items of its request", async (t) => {
  const held = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const answered = new Set<number>();
  const { service } = await start(t, {
    answer: async (body, forward) => {
      if (body.includes(address(2).slice(2))) {
        await held.promise;
      } else {
        for (const n of [1, 3, 4].filter((each) => body.includes(address(each)))) {
          answered.add(n);
        }
        if (answered.size === 3) {
          late.resolve();
        }
      }
      return forward(body);
    },
  });
  const responses = sendBatch(service.url, items(4));
  // The node has the items again, each alone, and has answered all but the slow one.
  await late.promise;
  held.resolve();
  assertAnswered(await responses, 4);
});

test("an item that breaks the connection does not fail the other items", async (t) => {
  const { node, service } = await start(t, {
    answer: async (body, forward) => {
      if (body.includes(address(2).slice(2))) {
        node.closeSockets();
        throw new Error("the connection breaks");
      }
      return forward(body);
    },
  });
  const responses = await sendBatch(service.url, items(4));
  assert.deepEqual(
    responses.map(({ result }) => result),
    ["0x1", undefined, "0x3", "0x4"],
  );
});

test("a client that disconnects does not end the calls of others in the same request", async (t) => {
  const held = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const { service } = await start(t, {
    answer: async (body, forward) => {
      if (body.includes(address(7))) {
        arrived.resolve();
        await held.promise;
      }
      return forward(body);
    },
  });
  const leaving = new AbortController();
  const left = sendBatch(service.url, [item(6), item(7)], leaving.signal);
  const other = rpc(service.url, "eth_getBalance", [address(7), "latest"]);
  await arrived.promise;
  leaving.abort();
  await assert.rejects(left);
  held.resolve();
  assert.equal((await other).body.result, "0x7");
});
