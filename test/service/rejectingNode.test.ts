import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

const HEIGHT = 100;
const chain = createFakeChain({ height: HEIGHT });

interface Rig {
  /** The node of the first tier, which is asked first. */
  readonly first: FakeNode;
  readonly second: FakeNode;
  readonly service: Service;
  /** The messages and fields of warnings. */
  readonly warnings: (readonly [fields: Record<string, unknown>, message: string])[];
}

const start = async (t: TestContext, nodes: 1 | 2 = 2): Promise<Rig> => {
  const [first, second] = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain })]);
  const all = [
    { name: "first", url: first.url, wsUrl: first.wsUrl },
    { name: "second", url: second.url, priority: 1 },
  ];
  const service = await createService({ nodes: all.slice(0, nodes) }, { cache: { memoryBytes: 0 } });
  t.after(async () => {
    await service.close();
    await Promise.all([first.close(), second.close()]);
  });
  while ((await metric(service.opsUrl, "forebay_upstream_head")) < HEIGHT * nodes) {
    // A node without a head gets no reads.
  }
  const warnings: Rig["warnings"] = [];
  t.mock.method(service.telemetry.log, "warn", (fields: Record<string, unknown>, message: string) => {
    warnings.push([fields, message]);
  });
  return { first, second, service, warnings };
};

let nextAddress = 1;
const readBalance = ({ url }: Service, block = "0x20") =>
  rpc(url, "eth_getBalance", [`0x${(nextAddress++).toString(16).padStart(40, "0")}`, block]);

const reject = ({ faults }: FakeNode, answer: number, retryAfter: number | undefined): void => {
  Object.assign(faults, { answer, retryAfter, page: "key 0x1 is not known", methods: ["eth_getBalance"] });
};

/** A read of forebay itself may succeed between the first refusals, so that these are not in a row. */
const isAbout = (count: number, expected: number): void =>
  assert.ok(count >= expected && count <= expected + 2, `${count} requests`);

const isRejecting = ({ opsUrl }: Service, node = "first"): Promise<number> =>
  metric(opsUrl, "forebay_upstream_rejecting", `node="${node}"`);

for (const [status, meaning] of [
  [401, "the node rejects the credentials"],
  [402, "the provider's plan is exhausted"],
  [403, "the node rejects the credentials"],
] as const) {
  test(`a node that answers with ${status} is out after three reads, says why, and is used again after Retry-After`, async (t) => {
    const { first, second, service, warnings } = await start(t);
    assert.equal(await isRejecting(service), 0);
    reject(first, status, 1);
    for (let read = 0; read < 10; read += 1) {
      assert.equal((await readBalance(service)).body.result, "0x20");
    }
    isAbout(first.count("eth_getBalance"), 3);
    assert.equal(second.count("eth_getBalance"), 10);
    assert.equal(await isRejecting(service), 1);

    const reason = `${meaning} (HTTP status ${status}, code -32603)`;
    const ready = JSON.parse(await (await fetch(`${service.opsUrl}/readyz`)).text());
    assert.deepEqual(ready.chains[0].nodes, { first: reason });
    assert.equal(ready.ready, true);
    const page = JSON.parse(await (await fetch(`${service.url}/status.json`)).text());
    assert.equal(page.chains[0].nodes[0].reason, reason);
    const [fields, message] = warnings.at(-1) ?? [];
    assert.equal(message, "node is not used: it rejects requests");
    const { host, status: logged, code, text } = fields ?? {};
    assert.deepEqual([host, logged, code, text], [new URL(first.url).host, status, -32_603, "key 0x1 is not known"]);

    first.faults.answer = undefined;
    while ((await isRejecting(service)) === 1) {
      assert.equal((await readBalance(service)).body.result, "0x20");
    }
    const before = second.count("eth_getBalance");
    assert.equal((await readBalance(service)).body.result, "0x20");
    assert.equal(second.count("eth_getBalance"), before);
  });
}

test("the only node is not asked for each read while it rejects them, and the error names the cause and no node", async (t) => {
  const { first, service } = await start(t, 1);
  reject(first, 401, undefined);
  for (let read = 0; read < 10; read += 1) {
    const { status, body } = await readBalance(service);
    assert.equal(status, 503);
    assert.match(body.error?.message ?? "", read < 6 ? /HTTP status 401/ : /the node rejects the credentials/);
    assert.doesNotMatch(body.error?.message ?? "", /first/);
  }
  // Three refusals, and one try of the last usable node.
  isAbout(first.count("eth_getBalance"), 4);
});

test("a node that is out is tried at once for a read that the other node fails", async (t) => {
  const { first, second, service } = await start(t);
  reject(first, 402, undefined);
  while ((await isRejecting(service)) === 0) {
    assert.equal((await readBalance(service)).body.result, "0x20");
  }
  first.faults.answer = undefined;
  second.faults.error = { code: -32_099, message: "something that nobody has ever seen" };
  const answers = await Promise.all(Array.from({ length: 20 }, () => readBalance(service)));
  assert.deepEqual(
    answers.map(({ body }) => body.result),
    answers.map(() => "0x20"),
  );
  assert.equal(await isRejecting(service), 0);
});

test("a read waits for the rate limit of one node while the other one rejects requests", async (t) => {
  const { first, second, service } = await start(t);
  reject(second, 401, undefined);
  reject(first, 429, undefined);
  const assertWaits = async (): Promise<void> => {
    Object.assign(first.faults, { answer: 429 });
    const refused = first.asked("eth_getBalance");
    const response = readBalance(service);
    await refused;
    Object.assign(first.faults, { answer: undefined });
    assert.equal((await response).body.result, "0x20");
  };
  await assertWaits();
  first.faults.error = { code: -32_099, message: "something that nobody has ever seen" };
  while ((await isRejecting(service, "second")) === 0) {
    await readBalance(service);
  }
  first.faults.error = undefined;
  // The second node is out.
  await assertWaits();
});

test("a node that has no archive is not asked for old blocks, and for new ones it is", async (t) => {
  const { first, second, service } = await start(t);
  first.faults.error = { code: -32_000, message: "Archive requests require a personal token" };
  first.faults.methods = ["eth_getBalance"];
  assert.equal((await readBalance(service, "0x10")).body.result, "0x10");
  first.faults.error = undefined;
  const before = first.count("eth_getBalance");
  assert.equal((await readBalance(service, "0x10")).body.result, "0x10");
  assert.equal(first.count("eth_getBalance"), before);
  const seen = second.count("eth_getBalance");
  assert.equal((await readBalance(service, "0x60")).body.result, "0x60");
  assert.equal(second.count("eth_getBalance"), seen);
});

test("a refusal of one method excludes this method at the node only", async (t) => {
  const { first, second, service } = await start(t);
  first.faults.error = { code: -32_601, message: "the method eth_getBalance is not whitelisted" };
  first.faults.methods = ["eth_getBalance"];
  for (let read = 0; read < 10; read += 1) {
    assert.equal((await readBalance(service)).body.result, "0x20");
  }
  isAbout(first.count("eth_getBalance"), 3);
  assert.equal((await rpc(service.url, "eth_getStorageAt", [`0x${"1".repeat(40)}`, "0x0", "0x10"])).status, 200);
  assert.equal(second.count("eth_getStorageAt"), 0);
  assert.equal(await isRejecting(service), 0);
});

test("a node that rejects one kind of call with a status is not out", async (t) => {
  const { first, service } = await start(t, 1);
  Object.assign(first.faults, { answer: 403, page: "blocked", methods: ["debug_traceCall"] });
  for (let call = 0; call < 9; call += 1) {
    const { body } = await rpc(service.url, "debug_traceCall", [{ to: `0x${"1".repeat(40)}` }, "0x20", {}]);
    assert.match(body.error?.message ?? "", /HTTP status 403/);
  }
  // Each three refusals in a row, a call of forebay's own is sent and answered.
  assert.ok(first.count("eth_getBalance") >= 1);
  assert.equal(await isRejecting(service), 0);
  assert.equal((await readBalance(service)).body.result, "0x20");
});
