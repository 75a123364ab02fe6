import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";

const HEIGHT = 100;
const READS_AT_ONCE = 40;
/** No read fails because the machine is slow. */
const PATIENT = { timeoutMs: 300_000 };
const chain = createFakeChain({ height: HEIGHT });

const start = async (
  t: TestContext,
  count: number,
  options: Partial<ServiceChain> = {},
  concurrency = 256,
): Promise<{ readonly nodes: readonly FakeNode[]; readonly service: Service }> => {
  const nodes = await Promise.all(Array.from({ length: count }, () => createFakeNode({ chain })));
  const service = await createService(
    { nodes: nodes.map(({ url }) => ({ url, concurrency, batch: { maxCalls: 1 } })), ...options },
    { cache: { memoryBytes: 0 } },
  );
  t.after(async () => {
    await service.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  while ((await metric(service.opsUrl, "forebay_upstream_head")) < HEIGHT * count) {
    // A node without a head gets no reads.
  }
  return { nodes, service };
};

let nextAddress = 1;
const readMany = ({ url }: Service, count: number) =>
  Promise.all(
    Array.from({ length: count }, () =>
      rpc(url, "eth_getBalance", [`0x${(nextAddress++).toString(16).padStart(40, "0")}`, "0x20"]),
    ),
  );

test("if two of three nodes fail, the third one answers, and no read fails", async (t) => {
  // A back-off that begins stays: the test has no time in which only one of the two is out.
  const breaker = { failures: 3, openMs: PATIENT.timeoutMs };
  const { nodes, service } = await start(t, 3, { upstream: { ...PATIENT, breaker } });
  const failing = nodes.slice(1);
  const out = () => metric(service.opsUrl, "forebay_upstream_breaker_open");
  const read = async (): Promise<void> => {
    const answers = await readMany(service, READS_AT_ONCE);
    assert.deepEqual(new Set(answers.map(({ body }) => body.result)), new Set(["0x20"]));
  };
  for (const { faults } of failing) {
    faults.answer = 503;
    faults.methods = ["eth_getBalance"];
  }
  while ((await out()) < failing.length) {
    await read();
  }
  const before = failing.map((node) => node.count("eth_getBalance"));
  await read();
  assert.deepEqual(
    failing.map((node) => node.count("eth_getBalance")),
    before,
  );
});

test("a node that limits the rate gets fewer requests at once, and more with each round of responses", async (t) => {
  // No poll of the head responds meanwhile: each response lets one more request through.
  const options = { upstream: { ...PATIENT, attempts: 1 }, blockTimeMs: PATIENT.timeoutMs };
  const { nodes, service } = await start(t, 1, options);
  const [node] = nodes;
  assert.ok(node);
  node.faults.methods = ["eth_getBalance"];
  /** Sends reads that the node answers when it has all of them. */
  const readAtOnce = async (count: number, answer?: number) => {
    node.faults.answer = "hang";
    const before = node.count("eth_getBalance");
    const answers = readMany(service, count);
    while (node.count("eth_getBalance") < before + count) {
      await node.asked("eth_getBalance");
    }
    node.faults.answer = answer;
    node.release();
    return answers;
  };
  await readAtOnce(40);
  assert.equal(node.takeMostBalances(), 40);
  await readAtOnce(8, 429);
  node.faults.answer = undefined;
  node.takeMostBalances();
  node.faults.delayMs = 100;
  const answers = await readMany(service, 40);
  assert.deepEqual(new Set(answers.map(({ body }) => body.result)), new Set(["0x20"]));
  const most = node.takeMostBalances();
  // Half of 8, and one more with each of about seven rounds of responses. The rest is for forebay's own calls.
  assert.ok(most < 20, `${most} requests at once`);
});

test("a read that waits for a node is sent to another one when the first pauses", async (t) => {
  // Each node gets one read at a time.
  const { nodes, service } = await start(t, 2, { upstream: PATIENT, blockTimeMs: PATIENT.timeoutMs }, 2);
  for (const { faults } of nodes) {
    Object.assign(faults, { answer: "hang", methods: ["eth_getBalance"] });
  }
  const asked = Promise.race(
    nodes.map(async (node) => {
      await node.asked("eth_getBalance");
      return node;
    }),
  );
  const answers = readMany(service, READS_AT_ONCE);
  const first = await asked;
  await until(
    async () => (await metric(service.opsUrl, "forebay_requests_in_flight")) === READS_AT_ONCE,
    "the reads wait",
  );
  Object.assign(first.faults, { answer: 429, retryAfter: 60 });
  const sent = first.count("eth_getBalance");
  first.release();
  for (const node of nodes.filter((each) => each !== first)) {
    node.faults.answer = undefined;
    node.release();
  }
  const results = new Set((await answers).map(({ body }) => body.result));
  assert.deepEqual([results, first.count("eth_getBalance")], [new Set(["0x20"]), sent]);
});
