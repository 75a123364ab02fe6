import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../support/builders/randomValues.ts";
import { followHead } from "../../support/servers/followHead.ts";
import type { Service } from "../../support/servers/service.ts";
import { RandomStateBlocks, type TracedRefunds } from "./randomStateBlocks.ts";
import { StandInChain, type StandInFork } from "./standInChain.ts";

/** A chain, and its random blocks, which write all kinds of state. */
export interface StateChain {
  readonly chain: StandInChain;
  readonly blocks: RandomStateBlocks;
}

export interface StateChainOptions {
  readonly fork: StandInFork;
  readonly seed: number;
  /** Blocks after the genesis. */
  readonly length: number;
  readonly refunds?: TracedRefunds | undefined;
  /** Headers have state roots, so that nodes can have proofs and witnesses. */
  readonly hasRoots?: boolean;
}

const MAX_REORG = 64;
const REORG_SHARE = 0.15;
const DEEP_SHARE = 0.02;
const SHALLOW = 4;

export const createStateChain = async (options: StateChainOptions): Promise<StateChain> => {
  const { fork, seed, length, refunds, hasRoots = false } = options;
  const chain = new StandInChain(fork, hasRoots);
  const blocks = new RandomStateBlocks(chain, seed, refunds);
  blocks.genesis();
  for (let index = 0; index < length; index++) {
    await blocks.mine();
  }
  return { chain, blocks };
};

/** Mines a block, or replaces some of the newest ones. Returns whether it replaced some. */
const step = async ({ chain, blocks }: StateChain, random: () => number): Promise<boolean> => {
  const chance = random();
  const isReorganised = chance < REORG_SHARE;
  const limit = Math.min(chance < DEEP_SHARE ? MAX_REORG : SHALLOW, chain.height - 2);
  const depth = isReorganised ? 1 + Math.floor(random() * limit) : 0;
  if (depth > 0) {
    chain.rewind(depth);
  }
  const count = isReorganised ? depth + Math.floor(random() * 2) : 1;
  for (let index = 0; index < count; index++) {
    await blocks.mine();
  }
  return isReorganised;
};

export interface DriveOptions {
  readonly seed: number;
  readonly blockMs: number;
  /** Default: until the signal aborts. */
  readonly steps?: number | undefined;
  /** Awaited after each step. */
  readonly stepped?: () => Promise<void>;
}

/** Mines and reorganises. A step is a block or a reorganisation. Returns the number of reorganisations. */
export const drive = async (state: StateChain, options: DriveOptions, signal: AbortSignal): Promise<number> => {
  const { seed, blockMs, steps = Number.POSITIVE_INFINITY, stepped } = options;
  const random = createRandom(seed + 1);
  let reorganisations = 0;
  for (let count = 0; count < steps && !signal.aborted; count++) {
    reorganisations += (await step(state, random)) ? 1 : 0;
    await sleep(random() * 2 * blockMs);
    await stepped?.();
  }
  return reorganisations;
};

export interface CompareStepsOptions {
  readonly service: Service;
  readonly judge: { compareOnce(): Promise<void> };
  readonly steps: number;
  /** One step in this number is a reorganisation, 1 to 4 blocks deep. */
  readonly reorganisedEvery: number;
}

/** Mines or reorganises in each step, and compares two batches once the service serves the newest block. */
export const compareSteps = async ({ chain, blocks }: StateChain, options: CompareStepsOptions): Promise<void> => {
  const { service, judge, steps, reorganisedEvery } = options;
  for (let count = 0; count < steps; count++) {
    const depth = count % reorganisedEvery === reorganisedEvery - 1 ? 1 + (count % SHALLOW) : 0;
    if (depth > 0) {
      chain.rewind(depth);
    }
    for (let mined = 0; mined <= depth; mined++) {
      await blocks.mine();
    }
    await followHead(service, chain);
    await Promise.all([judge.compareOnce(), judge.compareOnce()]);
  }
};
