import { setTimeout as sleep } from "node:timers/promises";
import { Upstreams } from "../../src/heads/upstreams.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { BranchedChain } from "../world/chain/branchedChain.ts";
import { type BenchOptions, type BenchResult, median, quantile, round } from "./support/result.ts";

const CLAIM =
  "agreement of three origins costs 60 ms of the age of latest at the median, and 300 ms at p99, with pushed heads";
const ORIGINS = 3;
const HEIGHT = 20;
/** Mean of the exponential delay of each node's announcement. */
const LATE_MS = 50;

interface Variant {
  readonly name: string;
  readonly blockMs: number;
  readonly isPushed: boolean;
  /** Independent chains, so that slow blocks give enough samples. */
  readonly chains: number;
  readonly blocks: number;
}

const variants = (isShort: boolean): readonly Variant[] => {
  const size = (chains: number, blocks: number) => (isShort ? { chains: 4, blocks: 2 } : { chains, blocks });
  return [
    { name: "2 s pushed", blockMs: 2_000, isPushed: true, ...size(12, 30) },
    { name: "2 s polled", blockMs: 2_000, isPushed: false, ...size(12, 30) },
    ...(isShort
      ? []
      : [
          { name: "12 s pushed", blockMs: 12_000, isPushed: true, chains: 24, blocks: 8 },
          { name: "12 s polled", blockMs: 12_000, isPushed: false, chains: 24, blocks: 8 },
        ]),
    { name: "200 ms pushed", blockMs: 200, isPushed: true, ...size(4, 150) },
  ];
};

const exponential = (meanMs: number): number => -meanMs * Math.log(1 - Math.random());

/** One chain with three nodes, followed with agreement and without. Both get the same announcements. */
class World {
  readonly #honest: BranchedChain;
  readonly #nodes: readonly FakeNode[];
  readonly #chains: readonly BranchedChain[];
  readonly #followed: Readonly<Record<"auto" | "one", Upstreams>>;
  /** Ages in ms, by the way of following. */
  readonly ages: Readonly<Record<"auto" | "one", number[]>> = { auto: [], one: [] };

  private constructor(honest: BranchedChain, chains: readonly BranchedChain[], nodes: readonly FakeNode[], v: Variant) {
    this.#honest = honest;
    this.#chains = chains;
    this.#nodes = nodes;
    const follow = (agree: "auto" | 1): Upstreams =>
      new Upstreams(
        {
          ...{ chain: "bench", agree, blockTimeMs: v.blockMs },
          nodes: nodes.map(({ url, wsUrl }) => (v.isPushed ? { url, wsUrl } : { url })),
        },
        silent(),
      );
    this.#followed = { auto: follow("auto"), one: follow(1) };
  }

  static async start(variant: Variant): Promise<World> {
    const honest = new BranchedChain(HEIGHT, Math.max(1, Math.round(variant.blockMs / 1_000)));
    const chains = Array.from({ length: ORIGINS }, () => honest.copy());
    const nodes = await Promise.all(chains.map((chain) => createFakeNode({ chain, handlers: chain.handlers() })));
    const world = new World(honest, chains, nodes, variant);
    await Promise.all(Object.values(world.#followed).map(({ ready }) => ready));
    return world;
  }

  /** Seals a block. Each node announces it later. Resolves when both have served it. */
  async seal(): Promise<void> {
    this.#honest.mine();
    const { number } = this.#honest.latest;
    const blocks = [...this.#honest.blocks];
    const startMs = performance.now();
    const ended = new AbortController();
    const served = Object.entries(this.#followed).map(async ([name, { heads }]) => {
      while ((heads.current()?.latest.number ?? 0n) < number) {
        await heads.next(ended.signal);
      }
      this.ages[name === "auto" ? "auto" : "one"].push(performance.now() - startMs);
    });
    const announced = this.#chains.map(async (chain) => {
      await sleep(exponential(LATE_MS));
      chain.follow({ blocks });
    });
    await Promise.all([...served, ...announced]);
  }

  markActive(): void {
    for (const { heads } of Object.values(this.#followed)) {
      heads.markActive();
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#followed).map((followed) => followed.close()));
    await Promise.all(this.#nodes.map((node) => node.close()));
  }
}

const measure = async (variant: Variant) => {
  const worlds = await Promise.all(Array.from({ length: variant.chains }, () => World.start(variant)));
  try {
    await Promise.all(
      worlds.map(async (world, index) => {
        await sleep((variant.blockMs * index) / worlds.length);
        for (let block = 0; block < variant.blocks; block++) {
          const next = sleep(variant.blockMs);
          world.markActive();
          await Promise.all([world.seal(), next]);
        }
      }),
    );
    const auto = worlds.flatMap(({ ages }) => ages.auto);
    const one = worlds.flatMap(({ ages }) => ages.one);
    return {
      blocks: auto.length,
      auto: [median(auto), quantile(auto, 0.99)],
      one: [median(one), quantile(one, 0.99)],
    } as const;
  } finally {
    await Promise.all(worlds.map((world) => world.close()));
  }
};

/** Measures how much later a block is latest with agreement than without it. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const rows: Record<string, string> = {};
  let result = { ours: 0, yardstick: 0 };
  for (const variant of variants(short)) {
    const { blocks, auto, one } = await measure(variant);
    const show = ([middle, late]: readonly [number, number]) => `${round(middle, 0)} / ${round(late, 0)} ms`;
    const difference = [auto[0] - one[0], auto[1] - one[1]] as const;
    rows[variant.name] = `agreed ${show(auto)}, one ${show(one)}, difference ${show(difference)}, ${blocks} blocks`;
    if (variant.name === "2 s pushed") {
      result = { ours: round(auto[0], 1), yardstick: round(one[0], 1) };
    }
  }
  return { claim: CLAIM, ratio: round(result.yardstick / result.ours), ...result, unit: "ms, median", ...rows };
};
