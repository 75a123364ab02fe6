import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { HeadChange } from "../../src/core/heads.ts";
import type { Finality } from "../../src/heads/canonicalChain.ts";
import { ChainIdentity } from "../../src/heads/chainIdentity.ts";
import type { Agree } from "../../src/heads/decideHead.ts";
import { HeadTracker, type HeadTrackerOptions } from "../../src/heads/headTracker.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain, type FakeChain, type FakeChainOptions } from "../support/fakes/fakeChain.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";
import { type ChainNode, createChainNode } from "../support/servers/chainNode.ts";

export interface Setup extends FakeChainOptions {
  readonly nodes?: number;
  readonly finality?: Finality;
  readonly agree?: Agree;
  readonly hasFeed?: boolean;
  /** Who runs each node. Default: somebody else each. */
  readonly origins?: readonly string[];
  /** Default: a fake chain by the other options. */
  readonly chain?: FakeChain;
  /** The first node's chain when it is first read. */
  readonly firstChain?: FakeChain;
  /** Changes the nodes after they are identified, and before they are first read. */
  readonly alter?: (nodes: readonly ChainNode[], chain: FakeChain) => void;
  readonly known?: HeadTrackerOptions["known"];
}

export const trackHeads = async (
  t: TestContext,
  {
    nodes = 1,
    finality = {},
    agree = "auto",
    hasFeed = false,
    origins = [],
    firstChain,
    alter,
    known,
    ...options
  }: Setup = {},
) => {
  const clock = createFakeClock();
  const telemetry = silent();
  const { chain = createFakeChain(options) } = options;
  const ending = new AbortController();
  t.after(() => ending.abort());
  const { signal } = ending;
  const all = Array.from({ length: nodes }, (_, index) =>
    createChainNode(`node${index + 1}`, chain, origins[index], clock.nowMs),
  );
  const identity = new ChainIdentity({
    ...{ chain: "test", chainId: undefined, nodes: all, telemetry, signal, clock },
    onIdentified: () => undefined,
  });
  const heads = new HeadTracker(
    { chain: "test", finality, clock, identity, nodes: all, agree, hasFeed, known },
    telemetry,
    signal,
  );
  const changes: HeadChange[] = [];
  heads.subscribe((change) => changes.push(change));
  const [node] = all as [ChainNode];
  for (const node of all) {
    await identity.verify(node);
    node.calls = 0;
  }
  node.chain = firstChain ?? chain;
  alter?.(all, chain);
  for (const node of all) {
    heads.follow(node);
  }
  await clock.advance(0);
  return { clock, telemetry, chain, identity, heads, changes, node, nodes: all };
};

/** Advances fake time by `totalMs`, with a block every `blockMs`. Calls `each` every `stepMs`. */
export const mineFor = async (
  { clock, chain }: { clock: ReturnType<typeof createFakeClock>; chain: FakeChain },
  totalMs: number,
  blockMs: number,
  each: () => void = () => undefined,
  stepMs = 100,
) => {
  for (let elapsedMs = stepMs; elapsedMs <= totalMs; elapsedMs += stepMs) {
    await clock.advance(stepMs);
    if (elapsedMs % blockMs === 0) {
      chain.mine();
    }
    each();
  }
};

export const hashesOf = (blocks: readonly { hash: string }[]) => blocks.map(({ hash }) => hash);

export type Tracking = Awaited<ReturnType<typeof trackHeads>>;

export const BLOCK_MS = 2_000;
export const STEP_MS = 100;

export const served = ({ heads }: Tracking) => heads.current()?.latest;

/** Mines a block every 2 s. Calls `each` every 100 ms. Each announcement of an honest block is served or waits. */
export const run = async (setup: Tracking, blocks: number, each: (elapsedMs: number) => void = () => undefined) => {
  for (let elapsedMs = STEP_MS; elapsedMs <= blocks * BLOCK_MS; elapsedMs += STEP_MS) {
    setup.heads.markActive();
    await setup.clock.advance(STEP_MS);
    if (elapsedMs % BLOCK_MS === 0) {
      setup.chain.mine();
    }
    each(elapsedMs);
  }
};

/** Advances fake time without a new block. Calls `each` every 100 ms. */
export const pause = async (setup: Tracking, forMs: number, each: (elapsedMs: number) => void = () => undefined) => {
  for (let elapsedMs = STEP_MS; elapsedMs <= forMs; elapsedMs += STEP_MS) {
    setup.heads.markActive();
    await setup.clock.advance(STEP_MS);
    each(elapsedMs);
  }
};

export const isHonest = ({ chain }: Tracking, hash: string | undefined): boolean => chain.byHash(hash) !== undefined;

export const metricOf = async ({ telemetry }: Tracking, name: string): Promise<string[]> =>
  (await telemetry.registry.metrics()).split("\n").filter((line) => line.startsWith(`${name}{`));

/** Measures the longest time without a new served head. Call `step` every 100 ms. */
export const watchHead = (setup: Tracking) => {
  let [longestMs, stillMs] = [0, 0];
  let last = served(setup)?.hash;
  return {
    step: () => {
      const hash = served(setup)?.hash;
      stillMs = hash === last ? stillMs + STEP_MS : 0;
      last = hash;
      longestMs = Math.max(longestMs, stillMs);
    },
    get longestMs() {
      return longestMs;
    },
  };
};

/** Starts the first of three nodes alone. The others refuse connections. Its newest block is of now, or of the future. */
export const startAlone = async (
  t: TestContext,
  height: number,
  alter: (nodes: readonly [ChainNode, ChainNode, ChainNode], chain: FakeChain) => void,
  futureSeconds = 0,
) => {
  const startSeconds = Math.floor(Date.now() / 1_000) - height * 2 + futureSeconds;
  const setup = await trackHeads(t, {
    ...{ height, startSeconds, nodes: 3 },
    alter: (nodes, chain) => {
      for (const node of nodes.slice(1)) {
        node.refuses = true;
      }
      alter(nodes as [ChainNode, ChainNode, ChainNode], chain);
    },
  });
  await setup.clock.advance(3_000);
  const alone = served(setup);
  assert.ok(alone);
  return { ...setup, alone };
};
