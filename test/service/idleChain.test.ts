import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";
import { createService } from "../support/servers/service.ts";

const BLOCK_MS = 200;

/** Starts a forebay on a chain with 200 ms blocks. Nobody has used it yet. */
const starts = {
  "one process": async (t: Parameters<typeof startProcesses>[0], url: string) => {
    const service = await createService({ nodes: [{ url }], blockTimeMs: BLOCK_MS });
    t.after(() => service.close());
    return service;
  },
  "two processes": (t: Parameters<typeof startProcesses>[0], url: string) =>
    startProcesses(t, { chains: [{ name: "chain", nodes: [{ url }], blockTimeMs: BLOCK_MS }] }),
};

describe("an idle chain", { concurrency: true }, () => {
  for (const [name, start] of Object.entries(starts)) {
    test(`the blocks of an idle fast chain are not read, and its first client gets the newest: ${name}`, async (t) => {
      const chain = createFakeChain({ height: 500 });
      const node = await createFakeNode({ chain });
      t.after(() => node.close());
      const { url, opsUrl } = await start(t, node.url);
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
  }
});
