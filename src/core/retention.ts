import type { Hash } from "../ethereum/hex.ts";
import type { Heads } from "./heads.ts";

/** The block of a request. `hash` is set if the block ring contains the block. */
export interface RequestBlock {
  readonly number: bigint;
  readonly hash?: Hash;
}

/** How one class of responses is cached, verified and shared. See docs/architecture.md, invariant 1. */
export interface RetentionRule {
  /** False: the response is never cached. */
  readonly isCached: boolean;
  /** Whether concurrent equal requests share one request to a node. */
  readonly isCoalesced: boolean;
  /** Returns the part of the cache key that names what the response depends on, or undefined if it must not be cached. */
  keyAnchor(block: RequestBlock | undefined, heads: Heads): string | undefined;
  /** Time to live on disk and in Redis. Undefined: cached in memory only. */
  readonly storedSeconds: { readonly final: number; readonly recent: number } | undefined;
  /** Whether the block of a cached response is final. `ofBlock`: the finalized head of the request's view decides. */
  readonly finality: "final" | "recent" | "ofBlock";
  /** Cache only a response that is verified to be of the block whose hash is in the key. */
  readonly requiresVerification: boolean;
  /**
   * The part that names the block of the response.
   * `response`: the entry is stored and served only while the block in the response is canonical.
   */
  readonly blockFrom: "request" | "response";
  /** `view`: the response depends on the view's head, even if the request names no block. */
  readonly boundTo: "nothing" | "block" | "view";
  /** The block that must be canonical on the node before and after a request by number. Undefined: no block. */
  readonly branchAnchor: "requested" | "latest" | "finalized" | undefined;
  /** `null` is a result (no block contains the transaction), and the negative cache stores it for a short time. */
  readonly cachesNull: boolean;
  /** A node that is behind may return `null` for the transactions that the response lists. They are remembered. */
  readonly listsNewTransactions: boolean;
}

const STORED_SECONDS = { final: 7 * 86_400, recent: 3_600 };

const UNBOUND = {
  isCached: true,
  isCoalesced: true,
  storedSeconds: undefined,
  finality: "recent",
  requiresVerification: false,
  blockFrom: "request",
  boundTo: "nothing",
  branchAnchor: undefined,
  cachesNull: false,
  listsNewTransactions: false,
} as const;

const ONE_BLOCK = {
  ...UNBOUND,
  requiresVerification: true,
  boundTo: "block",
  branchAnchor: "requested",
} as const;

/** Anchors a response to one block by number and hash. */
const blockAnchor = (name: string, block: RequestBlock | undefined): string | undefined =>
  block?.hash === undefined ? undefined : `${name}:${block.number}:${block.hash}`;

/** A block above the finalized head can still be replaced. */
const finalAnchor = (block: RequestBlock | undefined, { finalized }: Heads): string | undefined =>
  block === undefined || finalized === undefined || block.number > finalized.number
    ? undefined
    : `final:${block.number}`;

const RULES = {
  /** Never changes while the process runs. */
  constant: { ...UNBOUND, keyAnchor: () => "constant" },
  /** The request contains the hash of its block. */
  byHash: { ...UNBOUND, storedSeconds: STORED_SECONDS, finality: "final", keyAnchor: () => "byHash" },
  /** A block at or below the finalized head. */
  final: {
    ...UNBOUND,
    storedSeconds: STORED_SECONDS,
    finality: "final",
    boundTo: "block",
    branchAnchor: "finalized",
    keyAnchor: finalAnchor,
  },
  /** The content of one block above the finalized head. */
  recent: {
    ...ONE_BLOCK,
    storedSeconds: STORED_SECONDS,
    listsNewTransactions: true,
    keyAnchor: (block) => blockAnchor("recent", block),
  },
  /** The state after one block above the finalized head. */
  recentState: { ...ONE_BLOCK, keyAnchor: (block) => blockAnchor("recentState", block) },
  /** Depends on the newest block. */
  head: {
    ...UNBOUND,
    boundTo: "view",
    branchAnchor: "requested",
    keyAnchor: (_, { latest }) => `head:${latest.hash}`,
  },
  /** Cached by transaction hash with the block that contains the transaction. */
  byTransaction: {
    ...UNBOUND,
    storedSeconds: STORED_SECONDS,
    finality: "ofBlock",
    blockFrom: "response",
    boundTo: "view",
    branchAnchor: "latest",
    cachesNull: true,
    keyAnchor: () => "byTransaction",
  },
  /** Not cached, and not shared by requests: a later request may expect the effect of an earlier one. */
  never: { ...UNBOUND, isCached: false, isCoalesced: false, keyAnchor: () => undefined },
} satisfies Readonly<Record<string, RetentionRule>>;

/** How long a response is valid, given the request's view. */
export type RetentionClass = keyof typeof RULES;

/** The one rule of each retention class. Nothing else that answers distinguishes the classes. */
export const RETENTION: Readonly<Record<RetentionClass, RetentionRule>> = RULES;

/** How long a value of one origin is served, if there are others. */
export const STATED_MS = 600_000;

/** What is known about a value that no hash proves. */
export interface StatedFacts {
  /** Whether nodes of two origins have stated it. */
  readonly isAgreed: boolean;
  /** Whether the chain has nodes of another origin. */
  readonly hasOthers: boolean;
  /** Whether two origins must agree on it, and another one can be asked now. */
  readonly needsSecond: boolean;
}

/** How long a value is served that no hash proves, in milliseconds. Its class may end it earlier. */
export const statedMs = ({ isAgreed, hasOthers, needsSecond }: StatedFacts): number =>
  isAgreed || !hasOthers ? Number.POSITIVE_INFINITY : needsSecond ? 0 : STATED_MS;
