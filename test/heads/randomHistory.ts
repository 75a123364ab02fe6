import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import { createFakeChain, type FakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { forge } from "./forge.ts";
import { type Tracking, trackHeads } from "./trackHeads.ts";

const HEIGHT = 100;
const STEP_MS = 250;
const FAULTS_MS = 60_000;
/** All faults have ended: an origin may be awaited for 36 s, and a wrong head for as long. */
const QUIET_MS = 90_000;

type Random = (below: number) => number;

/** What a node does for a time. */
interface Act {
  readonly untilMs: number;
  /** Changes the node at each step. */
  readonly step: () => void;
}

/** A random course of events on one chain. */
class History {
  readonly #random: Random;
  readonly #secondsPerBlock: number;
  readonly #setup: Tracking;
  readonly #liar: ChainNode | undefined;
  readonly #acts = new Map<ChainNode, Act>();
  chain: FakeChain;
  #pausedUntilMs = 0;

  constructor(setup: Tracking, secondsPerBlock: number, random: Random) {
    this.#setup = setup;
    this.#secondsPerBlock = secondsPerBlock;
    this.#random = random;
    this.chain = setup.chain;
    this.#liar = random(2) === 0 ? setup.nodes[random(setup.nodes.length)] : undefined;
  }

  step(ms: number, isQuiet: boolean): void {
    for (const node of this.#setup.nodes) {
      const act = this.#acts.get(node);
      if (act !== undefined && ms >= act.untilMs) {
        this.#acts.delete(node);
        this.#restore(node);
      } else {
        act?.step();
      }
      if (!isQuiet && act === undefined && this.#random(60) === 0) {
        this.#acts.set(node, { untilMs: ms + 2_000 + this.#random(30) * 1_000, step: this.#begin(node) });
      }
    }
    if (!isQuiet) {
      this.#changeChain(ms);
    }
    if ((isQuiet || ms >= this.#pausedUntilMs) && ms % (this.#secondsPerBlock * 1_000) === 0) {
      this.chain.mine();
    }
  }

  #restore(node: ChainNode): void {
    const honest = { lag: 0, height: undefined, down: false, refuses: false, available: true, chain: this.chain };
    Object.assign(node, honest);
  }

  #changeChain(ms: number): void {
    if (this.#random(120) === 0) {
      this.#pausedUntilMs = ms + this.#random(40) * 1_000;
    }
    if (this.#random(120) === 0) {
      const depth = 1 + this.#random(6);
      this.chain.reorg(depth, Math.max(1, depth + this.#random(3) - 1));
    }
    if (this.#random(1_000) === 0) {
      const { chain: before } = this;
      this.chain = createFakeChain({ seed: `${ms}`, height: 5 + this.#random(20) });
      for (const node of this.#setup.nodes.filter(({ chain }) => chain === before)) {
        node.chain = this.chain;
      }
    }
  }

  /** Begins what a node does next. */
  #begin(node: ChainNode): () => void {
    const { chain } = this;
    const random = this.#random;
    const secondsPerBlock = this.#secondsPerBlock;
    const none = () => undefined;
    const height = chain.blocks.length - 1;
    const set = (fields: Partial<ChainNode>) => (): (() => void) => {
      Object.assign(node, fields);
      return none;
    };
    const lies: readonly (() => () => void)[] = [
      () => {
        const forged = forge(chain, 1 + random(4), { depth: random(5), secondsPerBlock });
        node.chain = forged;
        return () => random(5) === 0 && forged.mine();
      },
      () => {
        const forged = forge(chain, 1 + random(4), { depth: random(5), secondsPerBlock });
        return () => Object.assign(node, { chain: random(2) === 0 ? forged : this.chain });
      },
      () => set({ chain: forge(chain, 3_000, { secondsPerBlock }) })(),
      set({ chain: createFakeChain({ seed: "unlinked", height: height + random(100) - 50 }) }),
    ];
    const faults: readonly (() => () => void)[] = [
      set({ lag: (1 + random(5)) * (random(4) === 0 ? 30 : 1) }),
      set({ height }),
      set({ height: height - 1 - random(5) }),
      set({ down: true }),
      set({ refuses: true }),
      set({ available: false }),
      () => set({ chain: forge(chain, 0, { secondsPerBlock }) })(),
      // The machines of a load balancer.
      () => () => Object.assign(node, { lag: random(4) }),
    ];
    const acts = node === this.#liar ? [...faults, ...lies, ...lies] : faults;
    return acts[random(acts.length)]?.() ?? none;
  }
}

/** Tests one random course of events. After it, the chain is served. */
export const testRandomHistory = (seed: number): void => {
  const count = 1 + (seed % 4);
  test(`after faults of all kinds, the newest block of ${count} origins is served, with seed ${seed}`, async (t) => {
    const random = createRandomBelow(seed);
    const secondsPerBlock = [0.25, 1, 2, 12][random(4)] ?? 2;
    const names = Array.from({ length: count }, (_, index) => `origin${index}`);
    const origins = names.flatMap((name) => (random(4) === 0 ? [name, name] : [name]));
    const startSeconds = Math.floor(Date.now() / 1_000) - HEIGHT * secondsPerBlock;
    const nodes = origins.length;
    const setup = await trackHeads(t, { height: HEIGHT, nodes, origins, secondsPerBlock, startSeconds });
    const history = new History(setup, secondsPerBlock, random);
    for (let ms = STEP_MS; ms <= FAULTS_MS + QUIET_MS; ms += STEP_MS) {
      setup.heads.markActive();
      await setup.clock.advance(STEP_MS);
      history.step(ms, ms > FAULTS_MS);
    }
    await setup.clock.advance(1_000);
    await setup.heads.refresh();
    const { latest, finalized } = setup.heads.current() ?? {};
    assert.equal(latest?.hash, history.chain.latest.hash, `${latest?.number} of ${history.chain.latest.number}`);
    const final = history.chain.blocks[Number(finalized?.number)];
    assert.equal(finalized?.hash, final?.hash, "the final block is of the chain");
  });
};
