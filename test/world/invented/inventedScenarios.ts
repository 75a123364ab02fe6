import type { FakeNode } from "../../support/fakes/fakeNode.ts";
import { FakeError } from "../../support/fakes/front.ts";
import type { BranchedChain } from "../chain/branchedChain.ts";
import type { PromiseName } from "../promises.ts";

export interface InventedNode {
  readonly chain: BranchedChain;
  readonly fake: FakeNode;
}

export interface InventedStep {
  readonly honest: BranchedChain;
  /** Counts the honest blocks since the start. */
  readonly turn: number;
}

type Act = (node: InventedNode, step: InventedStep) => void;

/** What nodes return to calls that they do not answer. */
export interface Failure {
  /** They answer one call of so many of each kind. By count: a rate that recovers by time could recover between polls alone. */
  readonly oneOf: number;
  readonly error: FakeError;
}

export interface InventedScenario {
  readonly name: string;
  readonly nodes: number;
  /** Who runs each node. Default: somebody else each. */
  readonly providers?: readonly string[];
  /** Node by node, what it does after each honest block. The default follows at once. */
  readonly acts: Readonly<Record<number, Act>>;
  /** Of all nodes but the first. */
  readonly failure?: Failure;
  /** Heads of honest nodes arrive within 15 s, and a client makes the nodes quote its words: only that nothing invented is served is promised. */
  readonly isHard?: true;
  /** The stated rule decides: with one against one, the preferred origin; if only the liar is left, its head. */
  readonly mayServeForged?: true;
  /** Whether the served head may change its branch. */
  readonly mayReorganise?: true;
  /** The label of the answers at the end. Default: agreed. */
  readonly label?: "agreed" | "linked";
  readonly isContradicted?: true;
}

/** Announces a child of the honest head, before the honest nodes have one. */
const inventChild: Act = ({ chain }, { honest }) => {
  chain.follow(honest);
  chain.mine(1, true);
};

/** Invents a chain once, and extends it faster than the honest one grows. */
const inventChain =
  (blocks: number): Act =>
  ({ chain }, { honest, turn }) => {
    if (turn === 1) {
      chain.follow(honest);
      chain.mine(blocks, true);
    } else {
      chain.mine(1, true);
    }
  };

const lag =
  (blocks: number): Act =>
  ({ chain }, { honest }) =>
    chain.follow(honest, blocks);

const resetAfter =
  (turns: number): Act =>
  ({ fake, chain }, { honest, turn }) => {
    chain.follow(honest);
    fake.faults.answer = turn > turns ? "reset" : undefined;
  };

const none = (): void => undefined;

const hangForSeconds =
  (index: number): Act =>
  ({ fake, chain }, { honest, turn }) => {
    chain.follow(honest);
    const isHanging = (turn + 4 * index) % 16 < 13;
    fake.faults.answer = isHanging ? "hang" : undefined;
    if (!isHanging) {
      fake.release();
    }
  };

const beLate =
  (index: number): Act =>
  ({ fake, chain }, { honest }) => {
    chain.follow(honest);
    fake.faults.delayMs = index === 0 ? 2_000 : 6_000;
  };

/** One of three or four origins invents a child of each block, and the others have a hard time. */
const hard = (
  name: string,
  { act, failure }: { readonly act?: (index: number) => Act; readonly failure?: Failure },
): readonly InventedScenario[] =>
  [3, 4].map((nodes) => ({
    ...{ name: `one of ${nodes} invents a child of each block, and the others ${name}`, nodes, isHard: true },
    acts: {
      0: inventChild,
      ...(act && Object.fromEntries(Array.from({ length: nodes - 1 }, (_, index) => [index + 1, act(index)]))),
    },
    ...(failure && { failure }),
  }));

/** What each of these scenarios holds to. */
export const INVENTED_PROMISE: PromiseName = "inventedHeads";

export const INVENTED_SCENARIOS: readonly InventedScenario[] = [
  { name: "one of four invents a child of each block", nodes: 4, acts: { 0: inventChild } },
  { name: "one of three invents a child of each block", nodes: 3, acts: { 0: inventChild } },
  { name: "one of three invents a chain 60 ahead", nodes: 3, acts: { 1: inventChain(60) } },
  {
    name: "one of three invents a child of each block, and the others lag by one and two blocks",
    nodes: 3,
    acts: { 0: inventChild, 1: lag(1), 2: lag(2) },
  },
  {
    name: "one of four invents a child, and the others lag by one to three blocks",
    nodes: 4,
    acts: { 0: inventChild, 1: lag(1), 2: lag(2), 3: lag(3) },
  },
  {
    name: "a liar returns to honesty after eight blocks",
    nodes: 3,
    acts: { 0: (node, step) => (step.turn < 8 ? inventChain(3)(node, step) : node.chain.follow(step.honest)) },
  },
  {
    name: "one of three is on a wrong fork that seals faster",
    nodes: 3,
    acts: {
      0: ({ chain }, { honest, turn }) => {
        if (turn === 1) {
          chain.follow(honest, 2);
        }
        chain.mine(2, true);
      },
    },
  },
  {
    name: "three nodes of one provider invent against two other origins",
    nodes: 5,
    providers: ["liar", "liar", "liar", "a", "b"],
    acts: { 0: inventChild, 1: inventChild, 2: inventChild },
  },
  {
    name: "a load balancer of an honest origin has machines that differ",
    nodes: 3,
    acts: { 0: inventChild, 1: ({ chain }, { honest, turn }) => chain.follow(honest, turn % 3) },
  },
  {
    name: "one of three reports its invented head as finalized",
    nodes: 3,
    acts: {
      0: (node, step) => {
        inventChain(20)(node, step);
        node.fake.faults.height = undefined;
      },
    },
  },
  {
    name: "one of two invents, and the honest one is preferred",
    nodes: 2,
    acts: { 1: inventChain(4) },
    label: "linked",
    isContradicted: true,
  },
  {
    name: "one of two invents, and is preferred",
    nodes: 2,
    acts: { 0: inventChain(4) },
    mayServeForged: true,
    mayReorganise: true,
    label: "linked",
    isContradicted: true,
  },
  { name: "nodes fail until one is left", nodes: 3, acts: { 0: resetAfter(3), 1: resetAfter(6) }, label: "linked" },
  { name: "one of three is silent", nodes: 3, acts: { 2: none } },
  ...hard("are well", {}),
  ...hard("hang for seconds", { act: hangForSeconds }),
  ...hard("take 2 and 6 s", { act: beLate }),
  ...hard("limit the rate", { failure: { oneOf: 4, error: new FakeError(-32_005, "too many requests") } }),
  ...hard("fail 90 % of their calls", {
    failure: { oneOf: 10, error: new FakeError(-32_603, "something that nobody has ever seen") },
  }),
];
