import assert from "node:assert/strict";
import { test } from "node:test";
import { Upstreams } from "../../src/heads/upstreams.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { createBatchFetch } from "../../src/nodes/fetchStateBatch.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const TIMEOUT_MS = 5_000;

for (const [form, isSuspended] of [
  [{ a: 1 }, true],
  [null, false],
] as const) {
  test(`a batch of state with ${JSON.stringify(form)} for a balance is read from the next node`, async (t) => {
    const chain = createFakeChain({ height: 20 });
    const fakes = await Promise.all(
      [form, "0x5"].map((balance) => createFakeNode({ chain, handlers: { eth_getBalance: () => balance } })),
    );
    const nodes = fakes.map(({ url }, index) => ({ url, name: index === 0 ? "liar" : "honest" }));
    const upstreams = new Upstreams({ chain: "test", nodes }, silent());
    t.after(async () => {
      await upstreams.close();
      await Promise.all(fakes.map((fake) => fake.close()));
    });
    await upstreams.ready;
    while (upstreams.nodes.some(({ head }) => head === undefined)) {
      await upstreams.heads.refresh();
    }
    const [liar, honest] = upstreams.nodes;
    assert.ok(liar && honest);
    // The first node in this order is asked first.
    const ranked = { nodes: [liar], heads: upstreams.heads };
    const calls = [
      createCall("eth_getBalance", [ADDRESS, "0x5"]),
      createCall("eth_getStorageAt", [ADDRESS, "0x0", "0x5"]),
    ];
    const { outcomes } = await createBatchFetch(ranked, TIMEOUT_MS)(calls);
    assert.ok(outcomes[0] instanceof Error, "no other node is left");
    assert.equal(liar.use, isSuspended ? "spare" : "yes");
    const both = await createBatchFetch(upstreams, TIMEOUT_MS)(calls);
    assert.deepEqual(both, { outcomes: ["0x5", chain.blocks[5]?.hash], node: "honest" });
  });
}

test("a batch of state that arrives after its node is found to be of another chain has no values", async (t) => {
  let chainId = "0x7a69";
  const fake = await createFakeNode({ handlers: { eth_chainId: () => chainId } });
  const upstreams = new Upstreams({ chain: "test", nodes: [{ url: fake.url, name: "node" }] }, silent());
  t.after(async () => {
    await upstreams.close();
    await fake.close();
  });
  await upstreams.ready;
  const [node] = upstreams.nodes;
  assert.ok(node);
  Object.assign(fake.faults, { answer: "hang", methods: ["eth_getBalance"] });
  const asked = fake.asked("eth_getBalance");
  const calls = [
    createCall("eth_getBalance", [ADDRESS, "0x5"]),
    createCall("eth_getStorageAt", [ADDRESS, "0x0", "0x5"]),
  ];
  const reading = createBatchFetch(upstreams, TIMEOUT_MS)(calls);
  await asked;
  chainId = "0x5";
  node.identity.requireCheck();
  await assert.rejects(node.identity.confirm());
  fake.release();
  const { outcomes } = await reading;
  assert.ok(outcomes.length === 2 && outcomes.every((outcome) => outcome instanceof Error));
});
