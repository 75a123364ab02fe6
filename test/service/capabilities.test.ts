import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";

/** Long, so that no read is late on a busy machine. */
const LONG_MS = 20_000;
const ADDRESS = `0x${"a1".repeat(20)}`;
const HEIGHT = 400;
const COUNT = "eth_getBlockTransactionCountByNumber";

type Handlers = NonNullable<FakeNodeOptions["handlers"]>;

const all = { disabled: false, oldestBlock: "0x0", deleteStrategy: { type: "none" } };
const windowOf = (retentionBlocks: number) => ({
  ...{ disabled: false, oldestBlock: `0x${(HEIGHT - retentionBlocks + 1).toString(16)}` },
  deleteStrategy: { type: "window", retentionBlocks },
});
const ARCHIVE = { state: all, tx: all, logs: all, receipts: all, blocks: all, stateproofs: { disabled: true } };
const FULL = { ...ARCHIVE, state: windowOf(128), stateproofs: windowOf(64) };

/** Starts a service in front of nodes with these handlers. The first node has the best priority. */
const start = async (t: TestContext, ...handlers: readonly Handlers[]) => {
  const chain = createFakeChain({ height: HEIGHT });
  const nodes = await Promise.all(
    handlers.map((each) => createFakeNode({ chain, handlers: { [COUNT]: () => "0x0", ...each } })),
  );
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index + 1}`, url, provider: "one", priority: index })),
    ...{ blockTimeMs: LONG_MS, state: { follow: false }, upstream: { hedge: { maxShare: 0 } } },
  });
  t.after(async () => {
    await service.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  const isRead = () => nodes.length === 1 || nodes.every((node) => node.count("eth_capabilities") > 0);
  await until(isRead, "each node is asked what it has");
  const ask = async (method: string, ...params: readonly unknown[]) => (await rpc(service.url, method, params)).body;
  return { nodes, ask };
};

test("reads go to the node that has the data, and none to the other one", async (t) => {
  const { nodes, ask } = await start(t, { eth_capabilities: () => FULL }, { eth_capabilities: () => ARCHIVE });
  const [full, archive] = nodes;
  await until(async () => {
    // The statement is there once the union has it.
    const { result } = await ask("eth_capabilities");
    return (result as typeof ARCHIVE | undefined)?.state.oldestBlock === "0x0";
  }, "the statements are read");
  await ask("eth_getBalance", ADDRESS, "0x5");
  assert.deepEqual([full?.count("eth_getBalance"), archive?.count("eth_getBalance")], [0, 1]);
  await ask(COUNT, "0x5");
  assert.deepEqual([full?.count(COUNT), archive?.count(COUNT)], [1, 0]);
  await ask("eth_getBalance", ADDRESS, `0x${(HEIGHT - 20).toString(16)}`);
  assert.deepEqual([full?.count("eth_getBalance"), archive?.count("eth_getBalance")], [1, 1]);
});

test("the answer is what all nodes have together", async (t) => {
  const { ask } = await start(t, { eth_capabilities: () => FULL }, { eth_capabilities: () => ARCHIVE });
  await until(async () => "tx" in ((await ask("eth_capabilities")).result as object), "the statements are read");
  const { result } = await ask("eth_capabilities");
  const { head, ...resources } = result as typeof ARCHIVE & { readonly head: { readonly number: string } };
  assert.equal(Number(head.number), HEIGHT);
  assert.deepEqual(resources, { ...ARCHIVE, stateproofs: windowOf(64) });
});

test("a node alone answers itself, and one without the method is used as before", async (t) => {
  const single = await start(t, { eth_capabilities: () => ({ head: {}, ...FULL }) });
  assert.deepEqual((await single.ask("eth_capabilities")).result, { head: {}, ...FULL });
  const { nodes, ask } = await start(t, {}, { eth_capabilities: () => FULL });
  await ask("eth_getBalance", ADDRESS, "0x5");
  assert.equal(nodes[0]?.count("eth_getBalance"), 1);
});

test("code 4444 means that another node is asked, and 4445 that none is", async (t) => {
  const eth_getBalance = ([, block]: readonly unknown[]) => {
    throw new FakeError(block === "0x5" ? 4444 : 4445, "words of its own");
  };
  const { nodes, ask } = await start(t, { eth_getBalance }, {});
  assert.equal((await ask("eth_getBalance", ADDRESS, "0x5")).error, undefined);
  assert.equal(nodes[1]?.count("eth_getBalance"), 1);
  assert.equal((await ask("eth_getBalance", ADDRESS, `0x${(HEIGHT - 10).toString(16)}`)).error?.code, 4445);
  assert.equal(nodes[1]?.count("eth_getBalance"), 1);
});
