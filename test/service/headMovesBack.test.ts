import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

test("the head moves back: a subscription gets no block twice", async (t) => {
  const chain = createFakeChain({ height: 100 });
  const nodes = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain })]);
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const { url, close } = await createService({ nodes: nodes.map(({ url }) => ({ url })), blockTimeMs: 1_000 });
  t.after(close);
  const socket = new WebSocket(url.replace("http", "ws"));
  t.after(() => socket.close());
  const numbers: number[] = [];
  socket.addEventListener("message", ({ data }) => {
    const { params } = JSON.parse(String(data));
    if (params !== undefined) {
      numbers.push(Number(params.result.number));
    }
  });
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  await setTimeout(2_500);
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
  await setTimeout(500);
  for (let block = 0; block < 4; block++) {
    chain.mine();
    await setTimeout(1_000);
  }
  for (const { faults } of nodes) {
    faults.lag = 3;
  }
  await setTimeout(8_000);
  assert.deepEqual(numbers, [101, 102, 103, 104]);
});
