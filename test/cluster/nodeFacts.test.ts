import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { serialize } from "node:v8";
import type { ChainCopy } from "../../src/cluster/chainCopy.ts";
import type { ChainInfo, MainFunctions, NodeFacts, ServingFunctions } from "../../src/cluster/chainProtocol.ts";
import { CopiedIdentity } from "../../src/cluster/copiedIdentity.ts";
import { MainLink } from "../../src/cluster/mainLink.ts";
import { ProcessChannel } from "../../src/cluster/processChannel.ts";
import { LoopWatch } from "../../src/cluster/viewGate.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

const factsOf = (isCordoned: boolean): readonly NodeFacts[] => [
  { name: "a", identified: true, isCordoned, head: undefined },
];

const fail = (error: unknown): never => {
  throw error;
};

/** A new serving process with one node. `send` runs a function of the main process' channel. */
const createServing = (t: { after(end: () => void): void }) => {
  const chain = createFakeChain();
  const node = createChainNode("a", chain);
  const main: ProcessChannel<ServingFunctions, MainFunctions> = new ProcessChannel(
    (messages) => serving.receive(messages),
    fail,
  );
  const serving: ProcessChannel<MainFunctions, ServingFunctions> = new ProcessChannel(
    (messages) => main.receive(messages),
    fail,
  );
  main.offer({ acknowledge: () => undefined });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const copy: ChainCopy = new MainLink(serving, new LoopWatch()).createCopy({
    chain: "chain",
    onNodes: (facts) => identity.apply(facts),
    onExpected: () => undefined,
    onStateDropped: () => undefined,
    onError: fail,
  });
  const identity = new CopiedIdentity({ nodes: () => [node], info: () => copy.info, signal: ending.signal });
  node.requireIdentityCheck = () => void identity.verify(node);
  const info: ChainInfo = {
    ...{ chainId: BigInt(chain.chainId), genesis: chain.blocks[0]?.hash ?? "0x", blockTimeMs: 2_000 },
    ...{ isKnown: true, executes: false, followsState: false, answersCalls: false },
  };
  const update = serialize({ changes: [], info, nodes: factsOf(false) });
  return { main, node, update };
};

test("a node whose facts arrive before the first view is not taken for one of another chain", async (t) => {
  const { main, node, update } = createServing(t);
  main.notify("setNodes", { chain: "chain", nodes: factsOf(false) });
  await nextTurn();
  main.notify("prepare", { chain: "chain", round: 1, update });
  await nextTurn();
  main.notify("commit", { chain: "chain", round: 1 });
  await nextTurn();
  await nextTurn();
  assert.equal(node.identified, true);
});

test("facts of nodes that arrive while the first view is prepared count", async (t) => {
  const { main, node, update } = createServing(t);
  const cordoned: boolean[] = [];
  node.setCordoned = (isCordoned) => void cordoned.push(isCordoned);
  main.notify("prepare", { chain: "chain", round: 1, update });
  main.notify("setNodes", { chain: "chain", nodes: factsOf(true) });
  main.notify("commit", { chain: "chain", round: 1 });
  await nextTurn();
  assert.deepEqual(cordoned, [true]);
});
