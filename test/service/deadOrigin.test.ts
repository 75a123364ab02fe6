import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

test("of two origins one is dead, and the other is 2,049 blocks ahead: its head is served within seconds", async (t) => {
  const chain = createFakeChain({ height: 100 });
  const ahead = createFakeChain({ height: 100 });
  const [dead, alive] = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain: ahead })]);
  t.after(() => alive.close());
  const nodes = [dead, alive].map(({ url }) => ({ url }));
  const { url, close } = await createService({ nodes, blockTimeMs: 1_000 });
  t.after(close);
  const served = async () => Number(Object((await rpc(url, "eth_blockNumber")).body).result);
  for (let step = 0; step < 100 && (await served()) !== 100; step++) {
    await setTimeout(50);
  }
  await dead.close();
  ahead.mine(2_049);
  for (let step = 0; step < 150 && (await served()) < 2_100; step++) {
    await setTimeout(100);
    if (step % 10 === 0) {
      ahead.mine();
    }
  }
  assert.ok((await served()) > 2_100, `${await served()} is served`);
});
