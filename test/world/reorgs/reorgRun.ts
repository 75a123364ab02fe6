import { setTimeout as sleep } from "node:timers/promises";
import { createRandomBelow } from "../../support/builders/randomValues.ts";
import { settled } from "../../support/clients/settled.ts";
import { type Lie, type LyingNode, startLyingNode } from "../../support/fakes/lyingNode.ts";
import { type Lifespan, startRedis } from "../../support/servers/redis.ts";
import { createService } from "../../support/servers/service.ts";
import { TruthChain } from "../chain/truthChain.ts";
import { BranchNode } from "./branchNode.ts";
import { type RecordedReplica, recordReplica, type Untrue } from "./recordedReplica.ts";
import { nextViewQuestion } from "./viewQuestion.ts";

/** A change of the chain. In a fork, the two nodes mine different branches, then the one with the shorter branch follows the other. */
export type ReorgStep =
  | { readonly kind: "mine"; readonly blocks: number }
  | { readonly kind: "reorg"; readonly depth: number }
  | { readonly kind: "fork"; readonly depth: number; readonly ours: number; readonly theirs: number };

export interface ReorgRun {
  readonly replicas: readonly RecordedReplica[];
  /** Runs the steps under load, with pauses between them, and returns every wrong answer. */
  run(steps: Iterable<ReorgStep>): Promise<readonly Untrue[]>;
}

const ASKERS_A_REPLICA = 6;
/** Interval at which the third node changes its fault; sometimes it has none. */
const LIE_MS = 700;
const BLOCK_MS = 250;
const CHAIN_ID = 901;
/** Before the time of the test, because a run mines faster than the chain's clock. */
const GENESIS_SECONDS = 1_700_000_000n;
const TRANSACTIONS_A_BLOCK = 2;

/** Starts a third node in front of an honest one. It has one fault after the other. */
const startLiar = async (t: Lifespan, target: string, lies: readonly Lie[], seed: number): Promise<LyingNode> => {
  const liar = await startLyingNode(t, target);
  const random = createRandomBelow(seed);
  const timer = setInterval(() => {
    const lie = lies[random(lies.length + 1)];
    liar.lies = lie ? [lie] : [];
  }, LIE_MS);
  t.after(() => clearInterval(timer));
  return liar;
};

/** Starts two nodes, a third one with wrong responses if there are `lies`, two replicas of forebay with one Redis, and clients. */
export const startReorgRun = async (t: Lifespan, seed: number, lies: readonly Lie[] = []): Promise<ReorgRun> => {
  const chain = await TruthChain.create(CHAIN_ID, seed, undefined, GENESIS_SECONDS);
  t.after(() => chain.lagBound.close());
  const [one, other] = [await BranchNode.start(t, chain), await BranchNode.start(t, chain)];
  const redis = await startRedis(t);
  const orders: readonly (readonly BranchNode[])[] = [
    [one, other],
    [other, one],
  ];
  const liars = lies.length === 0 ? [] : [(await startLiar(t, other.url, lies, seed)).url];
  const replicas = await Promise.all(
    orders.map(async (nodes) => {
      const honest = nodes.map(({ url }) => url);
      const service = await createService(
        {
          ...{ nodes: [...honest, ...liars].map((url) => ({ url })), blockTimeMs: BLOCK_MS, forks: "prague" },
          pending: { mode: "node" },
        },
        { cache: { redis: redis.url } },
      );
      t.after(() => service.close());
      await settled(service);
      return recordReplica(service, chain, nodes);
    }),
  );
  const random = createRandomBelow(seed);
  const mine = (node: BranchNode): Promise<void> => node.mine(TRANSACTIONS_A_BLOCK);

  const act = async (step: ReorgStep): Promise<void> => {
    switch (step.kind) {
      case "mine":
        for (let block = 0; block < step.blocks; block++) {
          await mine(one);
          await sleep(random(BLOCK_MS));
          other.follow(one);
          await sleep(random(BLOCK_MS));
        }
        return;
      case "reorg":
        await one.reorg(step.depth);
        await sleep(random(2 * BLOCK_MS));
        await mine(one);
        await sleep(random(2 * BLOCK_MS));
        other.follow(one);
        return;
      case "fork": {
        if (step.depth > 0) {
          await other.reorg(step.depth);
        }
        for (let block = 0; block < Math.max(step.ours, step.theirs); block++) {
          if (block < step.ours) {
            await mine(one);
          }
          await sleep(random(BLOCK_MS));
          if (block < step.theirs) {
            await mine(other);
          }
          await sleep(random(2 * BLOCK_MS));
        }
        if (step.ours >= step.theirs) {
          other.follow(one);
        } else {
          one.follow(other);
        }
      }
    }
  };

  return {
    replicas,
    run: async (steps) => {
      const ending = new AbortController();
      const asker = async (replica: RecordedReplica): Promise<void> => {
        while (!ending.signal.aborted) {
          await replica.ask(nextViewQuestion(chain, Number(replica.latest.number), random));
        }
      };
      const askers = replicas.flatMap((replica) => Array.from({ length: ASKERS_A_REPLICA }, () => asker(replica)));
      const untrue: Untrue[] = [];
      try {
        for (const step of steps) {
          await act(step);
          await sleep(BLOCK_MS);
          for (const replica of replicas) {
            untrue.push(...replica.check().map((each) => ({ ...each, step })));
          }
        }
      } finally {
        ending.abort();
        await Promise.all(askers);
      }
      for (const replica of replicas) {
        untrue.push(...replica.check());
      }
      return untrue;
    },
  };
};
