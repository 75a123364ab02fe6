import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Long, so that no read is late on a busy machine. */
const LONG_MS = 20_000;
const METHODS = ["eth_getBlockAccessList", "debug_getRawBlockAccessList"] as const;
const ADDRESS = `0x${"a1".repeat(20)}` as const;

/** Starts a service in front of a node for each list of lies. */
const start = async (t: TestContext, ...liesOfNodes: readonly (readonly Lie[])[]) => {
  const chain = new StandInChain("amsterdam");
  chain.mine([[ADDRESS, 7n]]);
  const nodes = await Promise.all(liesOfNodes.map((lies) => startWorldNode(t, chain, { lies })));
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index + 1}`, url, priority: index })),
    ...{ blockTimeMs: LONG_MS, forks: "prague", state: { follow: false } },
  });
  t.after(() => service.close());
  // Entries of final blocks have another key.
  await until(
    async () => (await (await fetch(`${service.opsUrl}/metrics`)).text()).includes('tag="finalized"'),
    "finality is known",
  );
  return { nodes, service, block: chain.head };
};

test("the access list of a block is read once, by number, tag and hash", async (t) => {
  const { nodes, service, block } = await start(t, []);
  for (const [method, expected] of [
    [METHODS[0], block.accessList?.json],
    [METHODS[1], block.accessList?.raw],
  ] as const) {
    for (const parameter of ["latest", block.hash, { blockHash: block.hash }]) {
      const { body } = await rpc(service.url, method, [parameter]);
      assert.deepEqual(body.result, expected, `${method} ${JSON.stringify(parameter)}`);
    }
    assert.equal(nodes[0]?.calls.get(method), 1);
  }
});

test("an access list whose hash is not in the header is read from another node", async (t) => {
  const changed: Lie = {
    ...{ name: "changed list", methods: METHODS },
    result: (list) =>
      Array.isArray(list)
        ? list.map((account) => ({ ...account, balanceChanges: [] }))
        : `${String(list).slice(0, -2)}00`,
  };
  const { service, block } = await start(t, [changed], []);
  // The header's check has passed for both, and this check for the second node.
  assert.deepEqual((await rpc(service.url, METHODS[0], ["latest"])).body.result, block.accessList?.json);
  assert.deepEqual((await rpc(service.url, METHODS[1], ["latest"])).body.result, block.accessList?.raw);
  assert.ok((await metric(service.opsUrl, "forebay_verify_failures_total", 'check="accessList"')) > 0);
});

test("an unknown block has no access list", async (t) => {
  const { service } = await start(t, []);
  assert.equal((await rpc(service.url, METHODS[0], ["0xffff"])).body.result, null);
  const raw = await rpc(service.url, METHODS[1], ["0xffff"]);
  assert.equal(raw.body.error?.message, "header not found");
});
