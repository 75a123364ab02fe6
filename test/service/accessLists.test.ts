import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createService } from "../support/servers/service.ts";
import { StandInNode, type StandInNodeOptions } from "../world/nodes/standInNode.ts";
import { WrittenChain } from "../world/state/writtenChain.ts";

/** Long, so that no read is late on a busy machine. */
const LONG_MS = 20_000;
const METHODS = ["eth_getBlockAccessList", "debug_getRawBlockAccessList"] as const;
const ADDRESS = `0x${"a1".repeat(20)}` as const;

type Lies = StandInNodeOptions["lies"];

/** Starts a service in front of a node for each of the `lies`. */
const start = async (t: TestContext, ...lies: readonly Lies[]) => {
  const written = new WrittenChain("amsterdam");
  written.mine([[ADDRESS, 7n]]);
  const nodes = await Promise.all(
    lies.map((each) => StandInNode.start({ chain: written.chain, hasAccessLists: true, lies: each })),
  );
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index + 1}`, url, priority: index })),
    ...{ blockTimeMs: LONG_MS, forks: "prague", state: { follow: false } },
  });
  t.after(async () => {
    await service.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  // Entries of final blocks have another key.
  await until(
    async () => (await (await fetch(`${service.opsUrl}/metrics`)).text()).includes('tag="finalized"'),
    "finality is known",
  );
  return { nodes, service, block: written.chain.latest };
};

test("the access list of a block is read once, by number, tag and hash", async (t) => {
  const { nodes, service, block } = await start(t, undefined);
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
  const changed: Lies = {
    eth_getBlockAccessList: (list) => (list as object[]).map((account) => ({ ...account, balanceChanges: [] })),
    debug_getRawBlockAccessList: (raw) => `${String(raw).slice(0, -2)}00`,
  };
  const { service, block } = await start(t, changed, undefined);
  // The header's check has passed for both, and this check for the second node.
  assert.deepEqual((await rpc(service.url, METHODS[0], ["latest"])).body.result, block.accessList?.json);
  assert.deepEqual((await rpc(service.url, METHODS[1], ["latest"])).body.result, block.accessList?.raw);
  assert.ok((await metric(service.opsUrl, "forebay_verify_failures_total", 'check="accessList"')) > 0);
});

test("an unknown block has no access list", async (t) => {
  const { service } = await start(t, undefined);
  assert.equal((await rpc(service.url, METHODS[0], ["0xffff"])).body.result, null);
  const raw = await rpc(service.url, METHODS[1], ["0xffff"]);
  assert.equal(raw.body.error?.message, "header not found");
});
