import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import { createFakeChain, type FakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import { trackHeads } from "./trackHeads.ts";

const HEIGHT = 80;
const RUN_BLOCKS = 60;
const STEP_MS = 250;

type Random = (below: number) => number;

const secondsPerBlockOf = ({ blocks: [genesis, first] }: FakeChain): number =>
  Number(first?.timestamp) - Number(genesis?.timestamp);

/** The acts of a liar. It may also be honest, late or down. */
const ACTS: readonly ((liar: ChainNode, honest: FakeChain, random: Random) => Partial<ChainNode>)[] = [
  () => ({}),
  (_, chain, random) => ({ chain: forge(chain, 1 + random(3), { secondsPerBlock: secondsPerBlockOf(chain) }) }),
  (_, chain, random) => {
    const depth = random(5);
    return { chain: forge(chain, 1 + random(60), { depth, secondsPerBlock: secondsPerBlockOf(chain) }) };
  },
  (_, _chain, random) => ({ lag: random(30) }),
  (_, _chain, random) => ({ down: true, refuses: random(2) === 0, available: random(2) === 0 }),
  (_, chain, random) => ({
    chain: createFakeChain({ seed: "unlinked", height: chain.blocks.length + random(100) - 30 }),
  }),
  (_, chain) => ({ chain: forge(chain, 3_000, { secondsPerBlock: secondsPerBlockOf(chain) }) }),
  ({ chain }) => ({ chain }),
];

const act = (liar: ChainNode, honest: FakeChain, random: Random): void => {
  const next = ACTS[random(ACTS.length)]?.(liar, honest, random);
  Object.assign(liar, { chain: honest, lag: 0, down: false, refuses: false, available: true, ...next });
};

/** Tests one random course of events. */
export const testRandomLiar = (seed: number): void => {
  test(`a liar beside two or three honest origins decides nothing and freezes nothing, with seed ${seed}`, async (t) => {
    const random = createRandomBelow(seed);
    const secondsPerBlock = [1, 2, 12][random(3)] ?? 2;
    const startSeconds = Math.floor(Date.now() / 1_000) - HEIGHT * secondsPerBlock;
    const setup = await trackHeads(t, { height: HEIGHT, nodes: 3 + random(2), secondsPerBlock, startSeconds });
    const { clock, chain, heads } = setup;
    const liar = setup.nodes[random(setup.nodes.length)] ?? setup.node;
    const honest = setup.nodes.filter((node) => node !== liar);
    let [stillMs, last] = [0, heads.current()?.latest];
    const step = async (): Promise<void> => {
      heads.markActive();
      await clock.advance(STEP_MS);
      if (random(12) === 0) {
        act(liar, chain, random);
      } else if (random(5) === 0 && liar.chain !== chain) {
        liar.chain.mine();
      }
      for (const node of honest.filter(() => random(6) === 0)) {
        node.lag = random(5) === 0 ? 1 : 0;
      }
      const latest = heads.current()?.latest;
      assert.ok(latest && chain.byHash(latest.hash), `${latest?.number} is invented`);
      assert.ok(latest.number >= (last?.number ?? 0n), `${latest.number} after ${last?.number}`);
      stillMs = latest.hash === last?.hash ? stillMs + STEP_MS : 0;
      last = latest;
      assert.ok(stillMs <= 2_000 * secondsPerBlock + 2_500, `${latest.number} for ${stillMs} ms`);
    };
    for (let block = 0; block < RUN_BLOCKS; block++) {
      for (let elapsedMs = 0; elapsedMs < secondsPerBlock * 1_000; elapsedMs += STEP_MS) {
        await step();
      }
      chain.mine();
    }
  });
};
