import assert from "node:assert/strict";
import { test } from "node:test";
import { callOverNewConnection } from "../support/clients/freshConnection.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";

test("two processes serve the heads of the main process, cached reads and forwarded calls", async (t) => {
  const chain = createFakeChain();
  const node = await createFakeNode({ chain, handlers: { custom_echo: (params) => params } });
  t.after(() => node.close());
  const forebay = await startProcesses(t, { chains: [{ name: "chain", nodes: [{ url: node.url }] }] });
  const ask = (method: string, params: readonly unknown[] = []) => callOverNewConnection(forebay.url, method, params);
  const headNumber = async (): Promise<bigint> => BigInt(String(await ask("eth_blockNumber")));

  const { number, hash } = chain.latest;
  for (let connection = 0; connection < 6; connection++) {
    assert.equal(await headNumber(), number);
    const block = await ask("eth_getBlockByNumber", ["latest", false]);
    assert.equal(Object(block).hash, hash);
    assert.deepEqual(await ask("custom_echo", [connection]), [connection]);
  }
  assert.equal((await forebay.servingPids()).length, 2);

  chain.mine();
  await until(async () => (await headNumber()) === chain.latest.number, "the new block is served");
  for (let connection = 0; connection < 6; connection++) {
    assert.equal(await headNumber(), chain.latest.number);
  }
});
