import assert from "node:assert/strict";
import { test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

/** Members `topics` that no log has. */
const TOPICS: readonly ((topics: readonly unknown[]) => unknown)[] = [
  () => null,
  () => 5,
  (topics) => topics.join(),
  (topics) => [topics],
  (topics) => ({ topics }),
];

test("logs whose topics are no list of texts are not served, and another node is asked", async (t) => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  const nodes = await Promise.all([startWorldNode(t, chain), startWorldNode(t, chain)]);
  const [liar, honest] = nodes;
  assert.ok(liar && honest);
  const blocks = { fromBlock: "0x1", toBlock: "0x9" };
  const [log] = JSON.parse((await rpc(honest.url, "eth_getLogs", [blocks])).text).result;
  const params = [{ ...blocks, topics: [log.topics[0]] }];
  const { result } = JSON.parse((await rpc(honest.url, "eth_getLogs", params)).text);
  for (const change of TOPICS) {
    const changed = (each: unknown) => ({ ...Object(each), topics: change(Object(each).topics) });
    const lie = (answer: unknown) => (Array.isArray(answer) ? answer.map(changed) : answer);
    liar.fault = { lies: [{ name: "topics", methods: ["eth_getLogs"], result: lie }] };
    const service = await createService({
      nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: index })),
      ...{ blockTimeMs: 60_000, forks: "prague", pending: { mode: "node" }, state: { follow: false } },
    });
    t.after(() => service.close());
    const { text } = await rpc(service.url, "eth_getLogs", params);
    assert.deepEqual(JSON.parse(text).result, result, text);
  }
});
