import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { serialize } from "node:v8";
import type { ChainCopy } from "../../src/cluster/chainCopy.ts";
import type { ChainInfo, MainFunctions, NodeFacts, ServingFunctions } from "../../src/cluster/chainProtocol.ts";
import { CopiedIdentity } from "../../src/cluster/copiedIdentity.ts";
import { MainLink } from "../../src/cluster/mainLink.ts";
import { ViewEncoder } from "../../src/cluster/viewEncoder.ts";
import { LoopWatch } from "../../src/cluster/viewGate.ts";
import { Channel } from "../../src/threads/channel.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createFakeChain, type FakeChain } from "../support/fakes/fakeChain.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

const factsOf = (isCordoned: boolean): readonly NodeFacts[] => [
  { name: "a", identified: true, isCordoned, head: undefined },
];

const infoOf = ({ chainId, blocks }: FakeChain): ChainInfo => ({
  ...{ chainId: BigInt(chainId), genesis: blocks[0]?.hash ?? "0x", blockTimeMs: 2_000 },
  ...{ isKnown: true, executes: false, followsState: false, answersCalls: false },
});

const fail = (error: unknown): never => {
  throw error;
};

/** A new serving process with one node. `send` runs a function of the main process' channel. */
const createServing = (t: { after(end: () => void): void }) => {
  const chain = createFakeChain();
  const node = createChainNode("a", chain);
  const main: Channel<ServingFunctions, MainFunctions> = new Channel({
    post: (messages) => serving.receive(messages),
    onError: fail,
  });
  const serving: Channel<MainFunctions, ServingFunctions> = new Channel({
    post: (messages) => main.receive(messages),
    onError: fail,
  });
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
  node.identity.requireCheck = () => void identity.verify(node);
  const update = serialize({ changes: [], info: infoOf(chain), nodes: factsOf(false) });
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
  assert.equal(node.identity.isIdentified, true);
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

test("facts of nodes that arrive while a later view is prepared count", (t) => {
  const { main, node, update } = createServing(t);
  let last: boolean | undefined;
  node.setCordoned = (isCordoned) => {
    last = isCordoned;
  };
  main.notify("prepare", { chain: "chain", round: 1, update });
  main.notify("commit", { chain: "chain", round: 1 });
  main.notifyNow("prepare", { chain: "chain", round: 2, update });
  main.notifyNow("setNodes", { chain: "chain", nodes: factsOf(true) });
  main.notifyNow("commit", { chain: "chain", round: 2 });
  assert.equal(last, true);
});

test("facts that a new process has got are sent to the others", () => {
  const node = createChainNode("a", createFakeChain());
  const encoder = new ViewEncoder([node], () => infoOf(createFakeChain()));
  encoder.encode([{ heads: { heads: createHeads({ latest: 3 }), from: [], to: [] } }]);
  assert.equal(encoder.takeChangedNodes(), undefined);
  node.setCordoned(true);
  assert.ok(encoder.snapshot());
  assert.deepEqual(encoder.takeChangedNodes(), factsOf(true));
});
