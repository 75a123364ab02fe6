import assert from "node:assert/strict";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const BLOCK_MS = 200;

test("the blocks of an idle fast chain are not read, and its first client gets the newest", async (t) => {
  const chain = createFakeChain({ height: 500 });
  const node = await createFakeNode({ chain });
  t.after(() => node.close());
  const { url, opsUrl, close } = await createService({ nodes: [{ url: node.url }], blockTimeMs: BLOCK_MS });
  t.after(close);
  const ofHead = () => metric(opsUrl, "forebay_head", 'tag="latest"');

  const asked = () => node.requests.filter(({ body }) => body.includes("latest")).length;
  const before = asked();
  chain.mine(50);
  await until(() => asked() > before, "it is polled");
  await until(async () => (await ofHead()) === Number(chain.latest.number), "the alert sees the new head");
  const isRead = (number: number) => node.requests.some(({ body }) => body.includes(`"0x${number.toString(16)}"`));
  assert.equal(isRead(520), false);

  chain.mine(3);
  const { body } = await rpc(url, "eth_blockNumber");
  assert.equal(BigInt(String(body.result)), chain.latest.number);
  assert.equal(isRead(520), true, "all blocks between are read");
  const finalized = Object(await rpc(url, "eth_getBlockByNumber", ["finalized", false])).body.result;
  assert.equal(BigInt(finalized.number), chain.latest.number - 8n);
});
