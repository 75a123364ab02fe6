import { setTimeout as sleep } from "node:timers/promises";
import { answerBody, callsOf, type FrontResponse, startFront } from "../../support/fakes/front.ts";
import { type Lie, LieTeller } from "../../support/fakes/lyingNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { answerCall, type NodeView } from "../chain/nodeAnswers.ts";
import { ancestorAt, isAncestor } from "../chain/sealedBlock.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { NodeFilters } from "./nodeFilters.ts";

/** How a node differs from an honest one. */
export interface NodeFault {
  /** Returns how many blocks the view of the next request is behind the head. */
  readonly lag?: () => number;
  /** The time by which it learns later of each head. */
  readonly lateMs?: number;
  /** The chain that it follows instead. */
  readonly chain?: TruthChain;
  /** Wrong responses, applied in order. */
  readonly lies?: readonly Lie[];
  /** `hang`: it accepts a request and never answers. `cut`: it closes the connection in the middle of the body. */
  readonly body?: "hang" | "cut";
}

/** A node that follows the chain, with a fault that can change at any time. */
export interface TruthNode {
  readonly url: string;
  /** Without a fault, it is honest. */
  fault: NodeFault | undefined;
  /** The head of a branch of its own. Undefined: it follows the chain. */
  head: TruthBlock | undefined;
  /** Time until a response is sent. */
  delayMs: number;
  /** Calls by method. Items of a batch count singly. */
  readonly calls: ReadonlyMap<string, number>;
}

export interface TruthNodeOptions {
  /** Whether it forgets the blocks that its head leaves, as anvil does. Default: it keeps them, as geth does. */
  readonly forgets?: boolean;
}

/** Returns the head that a chain had some time ago. */
const headBefore = (chain: TruthChain, ms: number): TruthBlock => {
  const atMs = performance.now() - ms;
  return (ms === 0 ? undefined : chain.headsBetween(atMs, atMs)[0]) ?? chain.head;
};

/** Returns a chain without the blocks that are not on the branch of a head. */
const withoutBranches = (chain: TruthChain, head: TruthBlock): NodeView["chain"] => {
  const isKept = (block: TruthBlock | undefined): boolean => block !== undefined && isAncestor(block, head);
  return {
    chainId: chain.chainId,
    block: (hash) => [chain.block(hash)].find(isKept),
    holding: (transaction) => chain.holding(transaction).filter(isKept),
  };
};

/** Starts a node. It ends with the test. */
export const startTruthNode = async (
  t: Lifespan,
  chain: TruthChain,
  { forgets = false }: TruthNodeOptions = {},
): Promise<TruthNode> => {
  const calls = new Map<string, number>();
  const filters = new NodeFilters();

  const viewOf = (fault: NodeFault | undefined): NodeView => {
    const followed = fault?.chain ?? chain;
    const newest = node.head ?? headBefore(followed, fault?.lateMs ?? 0);
    const head = ancestorAt(newest, Math.max(0, newest.number - (fault?.lag?.() ?? 0))) ?? newest;
    return { chain: forgets ? withoutBranches(followed, head) : followed, head };
  };
  const teller = new LieTeller(async (body): Promise<FrontResponse> => {
    const view = viewOf(node.fault);
    const answer = (method: string, params: readonly unknown[]): unknown =>
      filters.answer(view, method, params) ?? answerCall(view, method, params);
    return { status: 200, text: await answerBody(body, ({ method, params }) => answer(method, params)) };
  });
  const front = await startFront(async (body): Promise<FrontResponse> => {
    for (const { method } of callsOf(body)) {
      calls.set(method, (calls.get(method) ?? 0) + 1);
    }
    if (node.delayMs > 0) {
      await sleep(node.delayMs);
    }
    const { fault } = node;
    if (fault?.body === "hang") {
      return new Promise(() => undefined);
    }
    const response = await teller.answer(body, fault?.lies ?? []);
    const headers = { "content-type": response.text.startsWith("<") ? "text/html" : "application/json" };
    return { ...response, headers, breaks: fault?.body === "cut" ? "middle" : undefined };
  });
  t.after(() => front.close());
  const node: TruthNode = { url: front.url, fault: undefined, head: undefined, delayMs: 0, calls };
  return node;
};
