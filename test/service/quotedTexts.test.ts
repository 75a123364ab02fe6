import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PLAIN_READS } from "../../src/nodes/errorKind.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { QUOTES, quotingHandlers, TEXTS } from "../support/fakes/quotedErrors.ts";
import { createService, type Service } from "../support/servers/service.ts";

const chain = createFakeChain({ height: 100 });

interface Rig {
  readonly service: Service;
  readonly nodes: readonly FakeNode[];
  /** The text that the contract of `eth_call` returns. */
  contract: { text: string };
}

const start = async (t: TestContext): Promise<Rig> => {
  const contract = { text: "" };
  const handlers = quotingHandlers(() => contract.text);
  const nodes = await Promise.all([createFakeNode({ chain, handlers }), createFakeNode({ chain, handlers })]);
  const service = await createService(
    { nodes: nodes.map(({ url }, index) => ({ url, name: `node${index + 1}` })), forks: "none" },
    { cache: { memoryBytes: 0 } },
  );
  t.after(async () => {
    await service.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  const haveHeads = () =>
    service.chains.every(({ upstreams }) => upstreams.nodes.every(({ head }) => head === chain.latest.number));
  await until(haveHeads, "the heads of all nodes are known");
  return { service, nodes, contract };
};

const assertInUse = async ({ chains, opsUrl }: Service, what: string): Promise<void> => {
  for (const { upstreams } of chains) {
    for (const node of upstreams.nodes) {
      assert.ok(node.available, `${node.name} is out after ${what}: ${node.state.because}`);
      assert.equal(node.oldest, 0n, `${node.name} has pruned after ${what}`);
    }
  }
  assert.equal(await metric(opsUrl, "forebay_upstream_rejecting"), 0, what);
  assert.equal(await metric(opsUrl, "forebay_upstream_breaker_open"), 0, what);
};

for (const [method, { params }] of Object.entries(QUOTES)) {
  test(`a client whose words stand in the errors of ${method} puts no node out, and pauses none`, async (t) => {
    const { service, contract } = await start(t);
    for (const text of TEXTS) {
      contract.text = text;
      for (let call = 0; call < 6; call += 1) {
        const { body } = await rpc(service.url, method, params(text));
        assert.ok(body.error?.message.includes(text), JSON.stringify(body));
      }
      await assertInUse(service, `${method} with ${text}`);
    }
  });
}

test("no text of a client reaches a node in a plain read", async (t) => {
  const { service, nodes } = await start(t);
  const params = ["unauthorized", "unauthorized", ["unauthorized"]];
  for (const method of PLAIN_READS) {
    for (const list of [params, [`0x${"1".repeat(40)}`, ...params], [{ unauthorized: "unauthorized" }]]) {
      await rpc(service.url, method, list);
    }
  }
  for (const { requests } of nodes) {
    assert.deepEqual(
      requests.filter(({ body }) => body.includes("unauthorized")).map(({ body }) => body),
      [],
    );
  }
});
