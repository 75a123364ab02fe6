import assert from "node:assert/strict";
import { test } from "node:test";
import { CopiedIdentity } from "../../src/cluster/copiedIdentity.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

/** A node that the main process has identified. */
const createIdentified = (t: { after(end: () => void): void }) => {
  const chain = createFakeChain();
  const foreign = createFakeChain({ chainId: 5, seed: "other" });
  const node = createChainNode("a", chain);
  const ending = new AbortController();
  t.after(() => ending.abort());
  const identity = new CopiedIdentity({
    nodes: () => [node],
    info: () => ({ chainId: BigInt(chain.chainId), genesis: chain.blocks[0]?.hash ?? "0x" }),
    signal: ending.signal,
    checkMs: 1,
  });
  const inform = (identified: boolean): void =>
    identity.apply([{ name: "a", identified, isCordoned: false, head: undefined }]);
  inform(true);
  return { chain, foreign, node, identity, inform };
};

test("a node of another chain is not used although the main process has not found it yet", async (t) => {
  const { chain, foreign, node, identity, inform } = createIdentified(t);
  assert.deepEqual(await identity.verify(node), { kind: "same" });
  node.chain = foreign;
  assert.deepEqual(await identity.verify(node), { kind: "other" });
  inform(true);
  assert.equal(node.identity.isIdentified, false);
  node.chain = chain;
  await until(async () => node.identity.isIdentified, "it is checked again and used");
});

test("after the main process has found the node too, the main process decides when it is used again", async (t) => {
  const { chain, foreign, node, identity, inform } = createIdentified(t);
  node.chain = foreign;
  await identity.verify(node);
  inform(false);
  node.chain = chain;
  inform(true);
  assert.equal(node.identity.isIdentified, true);
});
