import assert from "node:assert/strict";
import { test } from "node:test";
import { rpc } from "../../support/clients/rpc.ts";
import { until } from "../../support/clients/until.ts";
import { createService } from "../../support/servers/service.ts";
import { EMITTER } from "../chain/emitter.ts";
import { TruthChain } from "../chain/truthChain.ts";
import { startWorldNode } from "../nodes/worldNode.ts";
import { findVerdict } from "./verdict.ts";

const CALL = { method: "eth_call", params: [{ to: EMITTER }, "latest"] };
/** No answer of the test is late. */
const MAX_LAG_MS = 60_000;

test("while two of three nodes are on different children of a new block, that block is a true head", async (t) => {
  const chain = await TruthChain.create(1, 1, MAX_LAG_MS);
  t.after(() => chain.lagBound.close());
  chain.lagBound.beginFault();
  const old = chain.head;
  const nodes = [await startWorldNode(t, chain), await startWorldNode(t, chain), await startWorldNode(t, chain)];
  for (const node of nodes) {
    node.head = old;
  }
  const service = await createService({
    nodes: nodes.map(({ url }) => ({ url })),
    ...{ blockTimeMs: 1_000, forks: "prague", pending: { mode: "node" } },
  });
  t.after(() => service.close());
  const ask = async () => {
    const startMs = performance.now();
    const { result, error } = (await rpc(service.url, CALL.method, CALL.params)).body;
    return { call: CALL, result, error, startMs, endMs: performance.now() };
  };
  assert.equal((await ask()).result, old.state.word);

  await chain.reorg(2, 2);
  const one = chain.head;
  await chain.reorg(1, 1);
  const other = chain.head;
  assert.ok(one.parent !== undefined && one.parent === other.parent);
  const [first, second] = nodes;
  assert.ok(first && second);
  first.head = one;
  second.head = other;
  const { word } = one.parent.state;
  await until(async () => (await ask()).result === word, "the block that both have is served");
  assert.deepEqual(findVerdict(chain, await ask()).kind, "true");
});
