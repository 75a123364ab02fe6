import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const start = async (t: TestContext, options: FakeNodeOptions) => {
  const node = await createFakeNode({ handlers: { eth_getBlockTransactionCountByHash: () => "0x0" }, ...options });
  const service = await createService({ nodes: [{ url: node.url, name: "own" }] });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  return { node, service };
};

test("a reload that changes a chain is applied although its measured block time is no whole number", async (t) => {
  // 22 s for 7 blocks.
  const { service } = await start(t, { chain: createFakeChain({ height: 7, secondsPerBlock: 3.2 }) });
  await settled(service);
  const [before] = service.chains;
  assert.ok(before !== undefined && !Number.isInteger(before.upstreams.heads.blockTimeMs));
  await service.reload({}, { upstream: { timeoutMs: 20_000 } });
  assert.notEqual(service.chains[0], before);
  assert.equal((await rpc(service.url, "eth_getBalance", [`0x${"11".repeat(20)}`, "0x5"])).body.result, "0x5");
});
