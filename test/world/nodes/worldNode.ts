import { setTimeout as sleep } from "node:timers/promises";
import {
  answerBody,
  callsOf,
  type FrontResponse,
  type SocketFront,
  startSocketFront,
} from "../../support/fakes/front.ts";
import { type Lie, LieTeller } from "../../support/fakes/lyingNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { answerCall, type NodeAbilities, type NodeRecord, type NodeView } from "../chain/nodeAnswers.ts";
import { ancestorAt, isAncestor, type SealedBlock } from "../chain/sealedBlock.ts";
import { NodeFilters } from "./nodeFilters.ts";

/** A chain that nodes follow. */
export interface FollowedChain extends NodeRecord {
  readonly head: SealedBlock;
  headsBetween(fromMs: number, toMs: number): readonly SealedBlock[];
  onHead(listener: (head: SealedBlock) => void): () => void;
}

/** Returns the head that a chain had some time ago. */
const headBefore = (chain: FollowedChain, ms: number): SealedBlock => {
  const atMs = performance.now() - ms;
  return (ms === 0 ? undefined : chain.headsBetween(atMs, atMs)[0]) ?? chain.head;
};

/** How a node differs from an honest one. */
export interface NodeFault {
  /** Returns how many blocks the view of the next request is behind the head. */
  readonly lag?: () => number;
  /** The time by which it learns later of each head. */
  readonly lateMs?: number;
  /** The chain that it follows instead. */
  readonly chain?: FollowedChain;
  /** Wrong responses, applied in order. */
  readonly lies?: readonly Lie[];
  /** `hang`: it accepts a request and never answers. `cut`: it closes the connection in the middle of the body. */
  readonly body?: "hang" | "cut";
}

/** A node that follows the chain, with a fault that can change at any time. */
export interface WorldNode extends Omit<SocketFront, "push"> {
  /** Without a fault, it is honest. */
  fault: NodeFault | undefined;
  /** The head of a branch of its own. Undefined: it follows the chain. */
  head: SealedBlock | undefined;
  /** Time until a response is sent. */
  delayMs: number;
  /** Calls by method. Items of a batch count singly. */
  readonly calls: Map<string, number>;
  /** Calls and HTTP responses that a lie has changed, by the name of the lie. */
  readonly lied: ReadonlyMap<string, number>;
}

export interface WorldNodeOptions extends NodeAbilities {
  /** Whether it forgets the blocks that its head leaves, as anvil does. Default: it keeps them, as geth does. */
  readonly forgets?: boolean;
  /** Wrong responses from the start. */
  readonly lies?: readonly Lie[] | undefined;
  /** Called with each method of a request once its response is known. The node sends it when all promises are fulfilled. */
  readonly beforeResponse?: ((method: string) => Promise<unknown> | undefined) | undefined;
}

/**
 * Fields of Amsterdam in a header that geth pushes before that fork. Responses over HTTP omit them
 * (docs/reference/state.md, Block access lists).
 */
const NULL_FIELDS = { blockAccessListHash: null, slotNumber: null } as const;

/** Returns a chain without the blocks that are not on the branch of a head. */
const withoutBranches = (chain: NodeRecord, head: SealedBlock): NodeRecord => {
  const isKept = (block: SealedBlock | undefined): boolean => block !== undefined && isAncestor(block, head);
  return {
    chainId: chain.chainId,
    block: (hash) => [chain.block(hash)].find(isKept),
    holding: (transaction) => chain.holding(transaction).filter(isKept),
  };
};

/** Starts a node that answers over HTTP, and pushes its heads over WebSocket. It ends with the test. */
export const startWorldNode = async (
  t: Lifespan,
  chain: FollowedChain,
  { forgets = false, lies, beforeResponse, ...abilities }: WorldNodeOptions = {},
): Promise<WorldNode> => {
  const calls = new Map<string, number>();
  const filters = new NodeFilters();

  const viewOf = (fault: NodeFault | undefined): NodeView => {
    const followed = fault?.chain ?? chain;
    const newest = node.head ?? headBefore(followed, fault?.lateMs ?? 0);
    const head = ancestorAt(newest, Math.max(0, newest.number - (fault?.lag?.() ?? 0))) ?? newest;
    return { ...abilities, chain: forgets ? withoutBranches(followed, head) : followed, head };
  };
  const teller = new LieTeller(async (body): Promise<FrontResponse> => {
    const view = viewOf(node.fault);
    const answer = (method: string, params: readonly unknown[]): unknown =>
      filters.answer(view, method, params) ?? answerCall(view, method, params);
    return { status: 200, text: await answerBody(body, ({ method, params }) => answer(method, params)) };
  });
  const front = await startSocketFront(async (body): Promise<FrontResponse> => {
    const methods = callsOf(body).map(({ method }) => method);
    for (const method of methods) {
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
    await Promise.all(methods.map((method) => beforeResponse?.(method)));
    const headers = { "content-type": response.text.startsWith("<") ? "text/html" : "application/json" };
    return { ...response, headers, breaks: fault?.body === "cut" ? "middle" : undefined };
  });
  const node: WorldNode = { ...front, fault: lies && { lies }, head: undefined, delayMs: 0, calls, lied: teller.lied };
  const stopPushing = chain.onHead(({ json }) => {
    if (node.head === undefined) {
      front.push({ ...NULL_FIELDS, ...json });
    }
  });
  t.after(() => {
    stopPushing();
    return front.close();
  });
  return node;
};
