import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { Call } from "../../src/jsonrpc/call.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import {
  BLOCK_MS,
  isHonest,
  metricOf,
  pause,
  run,
  served,
  startAlone,
  type Tracking,
  trackHeads,
  watchHead,
} from "./trackHeads.ts";

const setUp = ({ nodes }: Pick<Tracking, "nodes">): void => {
  for (const node of nodes) {
    node.refuses = false;
  }
};

test("of two origins that contradict each other, the first one decides, and an alert can fire", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 2 });
  const [, liar] = setup.nodes as [ChainNode, ChainNode];
  liar.chain = forge(setup.chain, 20);
  await run(setup, 6, () => assert.ok(isHonest(setup, served(setup)?.hash)));
  assert.equal(setup.heads.current()?.isAgreed, false);
  assert.deepEqual(await metricOf(setup, "forebay_heads_contradicted"), ['forebay_heads_contradicted{chain="test"} 1']);
  liar.chain = setup.chain;
  await run(setup, 3);
  assert.equal(setup.heads.current()?.isAgreed, true);
  assert.deepEqual(await metricOf(setup, "forebay_heads_contradicted"), ['forebay_heads_contradicted{chain="test"} 0']);
});

test("nodes of one origin count once", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 4, origins: ["a", "liar", "liar", "liar"] });
  const [, ...liars] = setup.nodes;
  for (const liar of liars) {
    liar.chain = forge(setup.chain, 20);
  }
  await run(setup, 6, () => assert.ok(isHonest(setup, served(setup)?.hash)));
});

test("the highest block that a majority has is served while origins lag behind", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  const [first, second] = setup.nodes as [ChainNode, ChainNode];
  first.lag = 1;
  second.lag = 3;
  await run(setup, 6, (elapsedMs) => {
    if (elapsedMs > 4 * BLOCK_MS && elapsedMs % BLOCK_MS > 1_200) {
      assert.equal(served(setup)?.number, setup.chain.latest.number - 1n);
    }
  });
  assert.equal(setup.changes.filter(({ from }) => from.length > 0).length, 0);
});

test("a silent origin costs one wait, and no further one until it is back", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 2 });
  const [, second] = setup.nodes as [ChainNode, ChainNode];
  await run(setup, 2);
  second.height = Number(setup.chain.latest.number);
  const first = watchHead(setup);
  await run(setup, 4, first.step);
  assert.ok(first.longestMs >= 3_500 && first.longestMs <= 4_500, `first wait: ${first.longestMs} ms`);
  assert.equal(setup.heads.current()?.isAgreed, false);
  const later = watchHead(setup);
  await run(setup, 6, later.step);
  assert.ok(later.longestMs <= 2_500, `later: ${later.longestMs} ms`);
  second.height = undefined;
  await run(setup, 3);
  assert.equal(setup.heads.current()?.isAgreed, true);
});

test("two silent origins of three that can be reached are awaited for 15 s", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  await run(setup, 2);
  for (const node of setup.nodes.slice(1)) {
    node.height = Number(setup.chain.latest.number);
  }
  const watch = watchHead(setup);
  await run(setup, 12, watch.step);
  assert.ok(watch.longestMs <= 17_500, `${watch.longestMs} ms`);
});

test("a reorganisation is served once a majority has it", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  await run(setup, 2);
  const old = setup.chain.latest;
  const [first, second] = setup.nodes as [ChainNode, ChainNode];
  const branch = createFakeChain({ height: setup.chain.blocks.length - 1 });
  branch.reorg(2, 3);
  first.chain = branch;
  await setup.heads.refresh();
  assert.equal(served(setup)?.hash, old.hash);
  second.chain = branch;
  await setup.heads.refresh();
  assert.equal(served(setup)?.hash, branch.latest.hash);
  assert.equal(setup.changes.at(-1)?.from.length, 2);
  assert.equal(setup.heads.current()?.isAgreed, true);
});

test("safe and finalized are the highest that a majority reports at or above", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  const [liar, late] = setup.nodes as [ChainNode, ChainNode];
  liar.finalizedDepth = 2;
  late.finalizedDepth = 20;
  await run(setup, 14);
  const { finalized, latest } = setup.heads.current() ?? {};
  assert.ok(finalized && latest);
  assert.equal(finalized.hash, setup.chain.blocks[Number(finalized.number)]?.hash);
  assert.ok(latest.number - finalized.number >= 8n, `finalized is ${latest.number - finalized.number} below`);
  assert.ok(latest.number - finalized.number <= 16n, `finalized is ${latest.number - finalized.number} below`);
});

test("a majority that lags behind a short ring moves the head not back", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  const { number: first = 0n } = served(setup) ?? {};
  const { oldest = first } = setup.heads.current() ?? {};
  for (const node of setup.nodes.slice(1)) {
    node.lag = Number(first - oldest) + 3;
  }
  await setup.heads.refresh();
  await run(setup, 4, () => assert.ok((served(setup)?.number ?? 0n) >= first));
});

for (const [lagging, waitBlocks] of [
  [1, 4],
  [2, 10],
] as const) {
  test(`${lagging} of ${lagging + 1} origins that lag by more than the wait, and go on, cost one wait`, async (t) => {
    const setup = await trackHeads(t, {
      height: 90,
      nodes: lagging + 1,
      alter: ([, ...late]) => {
        for (const node of late) {
          node.lag = 20;
        }
      },
    });
    await run(setup, waitBlocks);
    const watch = watchHead(setup);
    await run(setup, 6, () => {
      watch.step();
      assert.ok(setup.chain.latest.number - (served(setup)?.number ?? 0n) <= 1n);
    });
    assert.ok(watch.longestMs <= 2_500, `${watch.longestMs} ms`);
    assert.equal(setup.heads.current()?.isAgreed, false);
  });
}

/** Where two origins are that synchronise. */
const BEHIND: Readonly<Record<string, Partial<ChainNode>>> = {
  "are 100 blocks behind": { lag: 100 },
  "are 1,000 blocks behind": { lag: 1_000 },
  "have no block yet": { height: 0 },
};

for (const [name, behind] of Object.entries(BEHIND)) {
  test(`two origins that ${name} move the head not back, and cost one wait`, async (t) => {
    const setup = await startAlone(t, 1_500, ([, ...late]) => {
      for (const node of late) {
        Object.assign(node, behind);
      }
    });
    setUp(setup);
    let { number: highest } = setup.alone;
    const each = () => {
      const { number = 0n } = served(setup) ?? {};
      assert.ok(number >= highest, `${number} after ${highest}`);
      highest = number;
    };
    await run(setup, 10, each);
    const watch = watchHead(setup);
    await run(setup, 6, () => {
      each();
      watch.step();
    });
    assert.ok(watch.longestMs <= 2_500, `${watch.longestMs} ms`);
  });
}

test("an origin whose first read of finalized fails supports the tag", async (t) => {
  let isFailing = true;
  const setup = await trackHeads(t, {
    ...{ height: 60, nodes: 3 },
    alter: ([liar, ...honest]) => {
      Object.assign(liar ?? {}, { finalizedDepth: 2 });
      for (const node of honest) {
        const { batch } = node;
        const fail = () => new NodeError("timeout", node.name, "timeout");
        const isTag = ({ params: [tag] }: Call) => tag === "finalized";
        node.batch = async (calls, reach) => (isFailing && calls.some(isTag) ? calls.map(fail) : batch(calls, reach));
      }
    },
  });
  const isTrue = () => {
    const { finalized } = setup.heads.current() ?? {};
    assert.ok(finalized === undefined || setup.chain.latest.number - finalized.number >= 8n);
  };
  await run(setup, 3, isTrue);
  isFailing = false;
  await run(setup, 14, isTrue);
  assert.ok(setup.heads.current()?.finalized);
});

test("the heads of an excluded node count at once if no other node is left", async (t) => {
  const setup = await trackHeads(t, { height: 30, nodes: 3 });
  const [liar, ...others] = setup.nodes as [ChainNode, ChainNode, ChainNode];
  liar.chain = forge(setup.chain, 40);
  await run(setup, 8);
  assert.equal(setup.heads.isExcluded("node1"), true);
  liar.chain = setup.chain;
  for (const node of others) {
    node.refuses = true;
  }
  const watch = watchHead(setup);
  await run(setup, 6, watch.step);
  assert.ok(watch.longestMs <= 4_500, `${watch.longestMs} ms`);
  assert.equal(setup.heads.isExcluded("node1"), false);
  assert.ok((await metricOf(setup, "forebay_upstream_heads_excluded")).every((line) => line.endsWith(" 0")));
});

test("at the start, a node that does not answer delays the first head by 2 s", async (t) => {
  const setup = await trackHeads(t, {
    ...{ height: 30, nodes: 3 },
    alter: ([hung, second, third], chain) => {
      Object.assign(second ?? {}, { lag: 2 });
      Object.assign(third ?? {}, { lag: 1 });
      const send = hung?.send;
      Object.assign(hung ?? {}, {
        chain: forge(chain, 3),
        send: (call: Call, reach: { readonly signal: AbortSignal }) =>
          call.params[0] === "latest" || call.method === "eth_chainId"
            ? send?.(call, { ...reach, deadlineMs: Number.POSITIVE_INFINITY })
            : new Promise((_, reject) => reach.signal.addEventListener("abort", reject)),
      });
    },
  });
  await setup.clock.advance(2_000);
  assert.equal(served(setup)?.hash, setup.chain.blocks.at(-3)?.hash);
  assert.equal(setup.heads.current()?.isAgreed, true);
});

test("an origin without a vote has one again with the block that another one has above the served head", async (t) => {
  const setup = await trackHeads(t, { height: 80, nodes: 3 });
  await run(setup, 2);
  await setup.clock.advance(1_000);
  const [first, back, silent] = setup.nodes as [ChainNode, ChainNode, ChainNode];
  const height = setup.chain.blocks.length - 1;
  silent.height = height;
  Object.assign(back, { height, refuses: true });
  setup.chain.mine();
  await pause(setup, 2_500);
  assert.equal(first.health.headHash, setup.chain.latest.hash);
  assert.equal(setup.heads.current()?.latest.number, BigInt(height), "the others are awaited");
  Object.assign(back, { height: undefined, refuses: false });
  await pause(setup, 1_000);
  assert.equal(setup.heads.current()?.latest.hash, setup.chain.latest.hash);
  assert.equal(setup.heads.current()?.isAgreed, true);
});

test("two of three origins die, and the head follows the third one to its branch", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  const [first, second] = setup.nodes as [ChainNode, ChainNode];
  await run(setup, 2);
  for (const dead of [first, second]) {
    Object.assign(dead, { refuses: true });
  }
  setup.chain.reorg(3, 5);
  const watch = watchHead(setup);
  await run(setup, 6, watch.step);
  assert.ok(watch.longestMs <= 8_500, `${watch.longestMs} ms`);
  assert.ok(isHonest(setup, served(setup)?.hash));
});

test("two of three origins that stand still on a replaced block are awaited for 15 s, and an alert can fire", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  await run(setup, 2);
  const still = forge(setup.chain, 0);
  for (const node of setup.nodes.slice(1)) {
    node.chain = still;
  }
  setup.chain.reorg(1, 1);
  const watch = watchHead(setup);
  await run(setup, 6, watch.step);
  assert.deepEqual(await metricOf(setup, "forebay_heads_contradicted"), ['forebay_heads_contradicted{chain="test"} 1']);
  await run(setup, 6, watch.step);
  assert.ok(watch.longestMs <= 17_500, `${watch.longestMs} ms`);
  assert.ok(isHonest(setup, served(setup)?.hash));
});

test("an origin that stands still on a replaced block is awaited for 15 s, if the other has a node on each branch", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3, origins: ["a", "a", "b"] });
  await run(setup, 2);
  const still = forge(setup.chain, 0);
  for (const node of setup.nodes.slice(1)) {
    node.chain = still;
  }
  setup.chain.reorg(1, 1);
  const watch = watchHead(setup);
  await run(setup, 12, watch.step);
  assert.ok(watch.longestMs <= 17_500, `${watch.longestMs} ms`);
  assert.ok(isHonest(setup, served(setup)?.hash));
});

test("a chain that was reset is served at once while two of three origins are down", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 3 });
  const [first, ...dead] = setup.nodes as [ChainNode, ChainNode, ChainNode];
  await run(setup, 2);
  for (const node of dead) {
    node.down = true;
  }
  await run(setup, 12);
  first.chain = createFakeChain({ seed: "reset", height: 7 });
  await run(setup, 2);
  assert.equal(served(setup)?.hash, first.chain.latest.hash);
});

test("the head moves back after seconds from a block that no origin has any more, and an origin without a vote helps to decide", async (t) => {
  const setup = await trackHeads(t, { height: 60, nodes: 2 });
  const [first, second] = setup.nodes as [ChainNode, ChainNode];
  await run(setup, 2);
  second.height = Number(setup.chain.latest.number);
  const invented = forge(setup.chain, 5);
  first.chain = invented;
  await run(setup, 4);
  assert.equal(served(setup)?.hash, invented.latest.hash);
  // The first origin has only one of these blocks left. So has the second one.
  const height = Number(invented.latest.number) - 4;
  first.height = height;
  Object.assign(second, { chain: invented, height });
  await run(setup, 10);
  assert.equal(served(setup)?.number, BigInt(height));
  assert.equal(setup.heads.current()?.isAgreed, true);
});
