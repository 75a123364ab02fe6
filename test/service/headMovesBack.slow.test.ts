import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

test("the head moves back: a subscription does not get the kept block again", async (t) => {
  const chain = createFakeChain({ height: 100 });
  const nodes = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain })]);
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const { url, close } = await createService({ nodes: nodes.map(({ url }) => ({ url })), blockTimeMs: 200 });
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
  const isServed = async (number: number): Promise<boolean> =>
    Number((await rpc(url, "eth_blockNumber", [])).body.result) === number;
  const subscribed = once(socket, "message");
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
  await subscribed;
  for (let number = 101; number <= 104; number++) {
    chain.mine();
    await until(() => numbers.includes(number), "the block is sent");
  }
  for (const { faults } of nodes) {
    faults.lag = 3;
  }
  await until(() => isServed(101), "the head moves back");
  chain.mine();
  await until(() => numbers.length > 4, "the next block is sent");
  assert.deepEqual(numbers, [101, 102, 103, 104, 102]);
});
