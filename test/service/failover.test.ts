import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { forwardTo, startFront } from "../support/fakes/front.ts";
import { createService, type Service } from "../support/servers/service.ts";

const chain = createFakeChain({ height: 100 });
const handlers = { eth_getBalance: () => "0x1" };
let nodes: readonly FakeNode[];
let service: Service;

before(async () => {
  nodes = await Promise.all([createFakeNode({ chain, handlers }), createFakeNode({ chain, handlers })]);
  service = await createService(
    {
      nodes: nodes.map(({ url }, index) => ({ url, name: index === 0 ? "one" : "two" })),
      upstream: { breaker: { failures: 3, openMs: 200 } },
    },
    { cache: { memoryBytes: 0 } },
  );
});
after(async () => {
  await service?.close();
  await Promise.all(nodes.map((node) => node.close()));
});

const isOpen = async (): Promise<boolean> =>
  (await metric(service.opsUrl, "forebay_upstream_breaker_open", 'node="one"')) === 1;

/** Reads until `done`, eight at a time. Every read must get a response. */
const readUntil = async (done: () => boolean | Promise<boolean>): Promise<void> => {
  let at = 0;
  while (!(await done())) {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        rpc(service.url, "eth_getBalance", [`0x${(at++).toString(16).padStart(40, "0")}`, "0x10"]),
      ),
    );
    for (const { status, body } of answers) {
      assert.deepEqual({ status, result: body.result }, { status: 200, result: "0x1" });
    }
  }
};

for (const answer of ["reset", 503] as const) {
  test(`a node that answers with ${answer} under load fails no read, and its breaker opens and closes again`, async () => {
    const [one] = nodes;
    assert.ok(one);
    await readUntil(() => one.count("eth_getBalance") > 20);
    one.faults.answer = answer;
    await readUntil(isOpen);
    one.faults.answer = undefined;
    await readUntil(async () => !(await isOpen()));
    const before = one.count("eth_getBalance");
    await readUntil(() => one.count("eth_getBalance") > before + 20);
  });
}

test("logs are read from the only node at once after it has closed its connections", async (t) => {
  const node = await createFakeNode({ chain });
  t.after(() => node.close());
  const front = await startFront((body) => forwardTo(node.url, body));
  t.after(() => front.close());
  const alone = await createService({ nodes: [{ url: front.url }], blockTimeMs: 12_000 });
  t.after(() => alone.close());
  for (let number = 10; number < 16; number++) {
    await rpc(alone.url, "eth_getBalance", [`0x${"11".repeat(20)}`, `0x${number.toString(16)}`]);
    front.disconnect();
    const at = `0x${number.toString(16)}`;
    const { body } = await rpc(alone.url, "eth_getLogs", [{ fromBlock: at, toBlock: at }]);
    assert.deepEqual(Object(body).result, []);
  }
});
