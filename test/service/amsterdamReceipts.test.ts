import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createTypedChain, type Fields, type TypedHandlers, typedHandlers } from "../support/builders/typedBlocks.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const HEIGHT = 12;
const CHAIN_ID = 11_155_111;
const AMSTERDAM_SECONDS = 1_791_294_816;
const REQUIRE = { "x-forebay-require": "proven" };

const start = async (t: TestContext, lies: TypedHandlers["lies"] = {}) => {
  const typed = createTypedChain({
    ...{ chainId: CHAIN_ID, height: HEIGHT, types: [2, 2, 2], isAmsterdam: true, startSeconds: AMSTERDAM_SECONDS },
  });
  const nodes = await Promise.all(
    [lies, {}].map((own) => createFakeNode({ chain: typed.chain, handlers: typedHandlers(typed, { lies: own }) })),
  );
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const service = await createService({
    nodes: nodes.map(({ url }, priority) => ({ url, name: `node${priority}`, priority })),
    ...{
      blockTimeMs: 20_000,
      pending: { mode: "node" },
      upstream: { hedge: { maxShare: 0 } },
      state: { follow: false },
    },
  });
  t.after(() => service.close());
  return { typed, service };
};

test("a node that forges the gas of receipts since Amsterdam is found, in lists and in single receipts", async (t) => {
  const { typed, service } = await start(t, {
    eth_getBlockReceipts: (list) =>
      (list as unknown as readonly Fields[]).map((each) => ({ ...each, gasUsed: "0x9c41" })),
    eth_getTransactionReceipt: (receipt) => ({ ...receipt, gasUsed: "0x9c41" }),
  });
  for (const { hash, receipts } of typed.blocks.slice(1)) {
    const list = await rpc(service.url, "eth_getBlockReceipts", [hash]);
    assert.deepEqual(list.body.result, receipts);
    const single = await rpc(service.url, "eth_getTransactionReceipt", [receipts[1]?.transactionHash]);
    assert.deepEqual(single.body.result, receipts[1]);
  }
});

test("receipts since Amsterdam are proven, with the gas of each", async (t) => {
  const { typed, service } = await start(t);
  await until(async () => {
    const { body } = await rpc(service.url, "eth_getBlockByNumber", ["latest", false], REQUIRE);
    return body.error === undefined;
  }, "the head is agreed");
  for (const { hash, receipts } of typed.blocks.slice(1)) {
    const { body, headers } = await rpc(service.url, "eth_getBlockReceipts", [hash], REQUIRE);
    assert.match(headers.get("x-forebay-proof") ?? "", /^proven/);
    assert.deepEqual(
      (body.result as readonly Fields[]).map(({ gasUsed, cumulativeGasUsed }) => [gasUsed, cumulativeGasUsed]),
      receipts.map(({ gasUsed, cumulativeGasUsed }) => [gasUsed, cumulativeGasUsed]),
    );
  }
});
