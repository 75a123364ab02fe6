import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const HEIGHT = 40;

const ROUNDS = 3;

const ADDRESS = `0x${"a1".repeat(20)}`;

describe("no node can be reached", { concurrency: true }, () => {
  for (const count of [1, 2]) {
    test(`while no node can be reached, the 503 says so (${count} nodes)`, async (t) => {
      const chain = createFakeChain({ height: HEIGHT });
      const nodes = await Promise.all(Array.from({ length: count }, () => createFakeNode({ chain })));
      const service = await createService(
        { nodes: nodes.map(({ url }, index) => ({ url, provider: `operator${index}` })) },
        { cache: { memoryBytes: 0 } },
      );
      t.after(() => service.close());
      await until(
        async () => (await metric(service.opsUrl, "forebay_upstream_head")) === HEIGHT * count,
        "all heads are known",
      );
      for (const node of nodes) {
        node.closeSockets();
        await node.close();
      }
      for (let round = 0; round < ROUNDS; round++) {
        for (const [method, ...params] of [
          ["eth_getBalance", ADDRESS, "latest"],
          ["eth_call", { to: ADDRESS }, "latest"],
          ["eth_getBlockByNumber", "0x5", true],
          ["eth_getLogs", { fromBlock: "0x1", toBlock: "0x5" }],
          ["eth_sendRawTransaction", "0x00"],
          ["custom_method"],
        ] as const) {
          const { status, headers, body } = await rpc(service.url, method, params);
          assert.deepEqual([status, body.error?.message], [503, "no node can be reached"], `${method}, round ${round}`);
          assert.notEqual(headers.get("retry-after"), null, method);
        }
      }
    });
  }
});
