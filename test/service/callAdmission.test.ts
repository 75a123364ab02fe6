import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";

const METHOD = "custom_read";
const MAX_WAITING = 20;
/** Ranges that the node refuses. */
const MAX_LOG_BLOCKS = 16;

interface Range {
  readonly fromBlock: string;
  readonly toBlock: string;
}

const createNode = (t: TestContext): Promise<FakeNode> => {
  const node = createFakeNode({
    chain: createFakeChain({ height: 200 }),
    handlers: {
      [METHOD]: ([name]) => name,
      eth_getLogs: ([filter]) => {
        const { fromBlock, toBlock } = filter as Range;
        if (Number(toBlock) - Number(fromBlock) >= MAX_LOG_BLOCKS) {
          throw new FakeError(-32_005, "query returned more than 10000 results");
        }
        return [];
      },
    },
  });
  t.after(async () => (await node).close());
  return node;
};

const start = async (t: TestContext, chain: ServiceChain): Promise<Service> => {
  const service = await createService({ verify: "off", ...chain });
  t.after(() => service.close());
  return service;
};

/** Sends calls that nobody awaits. They end with the test. */
const send = (t: TestContext, { url }: Service, count: number): void => {
  const left = new AbortController();
  t.after(() => left.abort());
  for (let id = 0; id < count; id++) {
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: METHOD, params: [id] });
    const headers = { "content-type": "application/json" };
    fetch(url, { method: "POST", headers, body, signal: left.signal }).catch(() => undefined);
  }
};

/** Sends further calls until one is refused. */
const untilRefused = async (t: TestContext, service: Service): Promise<void> => {
  await until(async () => {
    send(t, service, 1);
    return (await metric(service.opsUrl, "forebay_upstream_refused_total")) > 0;
  }, "a call is refused");
};

test("a batch is answered whole by a node that serves few calls at a time, although one may wait", async (t) => {
  const node = await createNode(t);
  const service = await start(t, {
    nodes: [{ url: node.url, concurrency: 16, batch: { maxCalls: 1 } }],
    upstream: { maxWaiting: 1 },
  });
  node.faults.delayMs = 250;
  const calls = Array.from({ length: 80 }, (_, id) => ({ jsonrpc: "2.0", id, method: METHOD, params: [id] }));
  const headers = { "content-type": "application/json" };
  const response = await fetch(service.url, { method: "POST", headers, body: JSON.stringify(calls) });
  const results = (await response.json()) as readonly { readonly result?: number }[];
  assert.deepEqual(
    results.map(({ result }) => result),
    calls.map(({ id }) => id),
  );
});

test("a log query that was admitted is answered, although further calls of its client are refused", async (t) => {
  const node = await createNode(t);
  const service = await start(t, {
    nodes: [{ url: node.url, concurrency: 16 }],
    upstream: { maxWaiting: MAX_WAITING, hedge: { maxShare: 0 } },
  });
  Object.assign(node.faults, { answer: "hang", methods: [METHOD, "eth_getLogs"] });
  const arrived = node.asked("eth_getLogs");
  const logs = rpc(service.url, "eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x40" }]);
  await arrived;
  send(t, service, 200);
  await untilRefused(t, service);
  const split = node.asked("eth_getLogs");
  node.release();
  let isSplit = false;
  Promise.race([split, logs]).then(() => {
    isSplit = true;
  });
  await until(() => {
    node.release();
    return isSplit;
  }, "the node gets a smaller range");
  node.faults.answer = undefined;
  node.release();
  assert.deepEqual((await logs).body.result, []);
});

test("a call is refused if too many wait for the rate of the node, and counts as no call", async (t) => {
  const node = await createNode(t);
  const service = await start(t, {
    nodes: [{ url: node.url, requestsPerSecond: 10 }],
    upstream: { maxWaiting: MAX_WAITING },
  });
  const refuse = async () => {
    send(t, service, 2 * MAX_WAITING);
    return rpc(service.url, METHOD, ["refused"]);
  };
  let last = await refuse();
  while (last.status === 200) {
    last = await refuse();
  }
  const { status, headers, body } = last;
  assert.deepEqual([status, headers.get("retry-after"), body.error?.code], [503, "1", -32_603]);
  assert.equal(body.error?.message, "too many calls are waiting");
  assert.equal(await metric(service.opsUrl, "forebay_upstream_requests_total", 'outcome="overloaded"'), 0);
});

test("a write that one node refuses for its load is tried on the other", async (t) => {
  const [first, second] = await Promise.all([createNode(t), createNode(t)]);
  const service = await start(t, {
    nodes: [
      { name: "first", url: first.url, concurrency: 2 },
      { name: "second", url: second.url, concurrency: 2 },
    ],
    upstream: { maxWaiting: MAX_WAITING, hedge: { maxShare: 0 }, attempts: 1 },
  });
  for (const node of [first, second]) {
    Object.assign(node.faults, { answer: "hang", methods: [METHOD] });
  }
  send(t, service, 100);
  await until(async () => {
    send(t, service, 2);
    const refused = (node: string) => metric(service.opsUrl, "forebay_upstream_refused_total", `node="${node}"`);
    return (await refused("first")) > 0 && (await refused("second")) > 0;
  }, "both nodes refuse calls");
  const retries = () => metric(service.opsUrl, "forebay_upstream_retries_total", 'reason="overloaded"');
  const { status } = await rpc(service.url, "eth_sendRawTransaction", ["0x02f8"]);
  assert.equal(status, 503);
  // With one attempt, only writes have another node.
  assert.ok((await retries()) > 0);
});
