import { setTimeout as sleep } from "node:timers/promises";
import { createRandomBelow } from "../builders/randomValues.ts";
import { type BlockTruth, createBlockTruth, READ_KINDS, type ViewQuestion } from "../clients/blockTruth.ts";
import { settled } from "../clients/settled.ts";
import { type ForkingNode, startForkingNodes } from "../fakes/forkingNode.ts";
import { type Lie, type LyingNode, startLyingNode } from "../fakes/lyingNode.ts";
import { type RecordedReplica, recordReplica, type Untrue } from "./recordedReplica.ts";
import { type Lifespan, startRedis } from "./redis.ts";
import { createService } from "./service.ts";

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
/** Maximum depth of calls and reorganisations below the head. */
const MAX_DEPTH = 20;

const createQuestions = (truth: BlockTruth, random: (below: number) => number) => {
  const depth = (): bigint => BigInt(random(MAX_DEPTH));
  return ({ latest }: RecordedReplica): ViewQuestion => {
    const number = latest.number - depth();
    const hash = truth.transactions[random(truth.transactions.length)];
    switch (random(10)) {
      case 0:
        return { kind: "head" };
      case 1:
        return { kind: "logs", from: number - depth(), to: number };
      case 2:
      case 3:
        if (hash !== undefined) {
          return { kind: "transaction", method: "eth_getTransactionReceipt", hash };
        }
        return { kind: "head" };
      case 4:
        if (hash !== undefined) {
          return { kind: "transaction", method: "eth_getTransactionByHash", hash };
        }
        return { kind: "head" };
      case 5:
      case 6:
        return { kind: "block", read: random(READ_KINDS), number: undefined };
      default:
        return { kind: "block", read: random(READ_KINDS), number };
    }
  };
};

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
  const [one, other] = await startForkingNodes(t);
  const redis = await startRedis(t);
  const truth = createBlockTruth();
  await truth.record(one);
  const orders: readonly (readonly ForkingNode[])[] = [
    [one, other],
    [other, one],
  ];
  const liars = lies.length === 0 ? [] : [(await startLiar(t, other.url, lies, seed)).url];
  const replicas = await Promise.all(
    orders.map(async (nodes) => {
      const honest = nodes.map(({ url }) => url);
      const service = await createService(
        { nodes: [...honest, ...liars].map((url) => ({ url })), blockTimeMs: BLOCK_MS, pending: { mode: "node" } },
        { cache: { redis: redis.url } },
      );
      t.after(() => service.close());
      await settled(service);
      return recordReplica(service, nodes);
    }),
  );
  const random = createRandomBelow(seed);
  const nextQuestion = createQuestions(truth, random);
  let variant = 0;

  const mine = async (node: ForkingNode): Promise<void> => {
    await node.mine(++variant);
    await truth.record(node);
  };
  const follow = async (node: ForkingNode, leader: ForkingNode): Promise<void> => {
    await node.follow(leader);
    await truth.record(node);
  };

  const act = async (step: ReorgStep): Promise<void> => {
    switch (step.kind) {
      case "mine":
        for (let block = 0; block < step.blocks; block++) {
          await mine(one);
          await sleep(random(BLOCK_MS));
          await follow(other, one);
          await sleep(random(BLOCK_MS));
        }
        return;
      case "reorg":
        await one.reorg(step.depth);
        await truth.record(one);
        await sleep(random(2 * BLOCK_MS));
        await mine(one);
        await sleep(random(2 * BLOCK_MS));
        await follow(other, one);
        return;
      case "fork": {
        if (step.depth > 0) {
          await other.reorg(step.depth);
        }
        await truth.record(other);
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
          await follow(other, one);
        } else {
          await follow(one, other);
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
          await replica.ask(nextQuestion(replica));
        }
      };
      const askers = replicas.flatMap((replica) => Array.from({ length: ASKERS_A_REPLICA }, () => asker(replica)));
      const untrue: Untrue[] = [];
      try {
        for (const step of steps) {
          await act(step);
          await sleep(BLOCK_MS);
          for (const replica of replicas) {
            untrue.push(...replica.check(truth).map((each) => ({ ...each, step })));
          }
        }
      } finally {
        ending.abort();
        await Promise.all(askers);
      }
      for (const replica of replicas) {
        untrue.push(...replica.check(truth));
      }
      return untrue;
    },
  };
};
