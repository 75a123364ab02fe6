import { LRUCache } from "lru-cache";
import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { type Hash, isQuantity, ZERO_ADDRESS } from "../ethereum/hex.ts";
import { type Awaitable, createCall } from "../jsonrpc/call.ts";
import type { VerifiedNode } from "../verification/checker.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import { type BlockReader, readBlock } from "./blockReads.ts";
import type { NodeHealth } from "./nodeHealth.ts";

/** The newest blocks that a node has announced. */
type NodeBranch = Pick<NodeHealth, "head" | "headHash" | "hashAt">;

/** Whether the node has announced the block, or one above it. */
export const hasReached = ({ head }: NodeBranch, block: RpcRequest["block"]): boolean =>
  block === undefined || (head !== undefined && block.number <= head);

/**
 * Whether the node's newest block is in the view. A block above the view's head may belong to another branch, unless the node
 * has announced the view's head, or a child of it.
 */
export const isOnSameBranch = (node: NodeBranch, heads: Heads): boolean => {
  const { head, headHash } = node;
  if (head === undefined || headHash === undefined) {
    return true;
  }
  const canonical = heads.at(head);
  if (canonical !== undefined) {
    return canonical.hash === headHash;
  }
  const { number, hash } = heads.latest;
  return head < number || node.hashAt(number) === hash;
};

/** Whether the node's newest block is not the view's block at that number. */
const isOnOtherBranch = ({ head, headHash }: NodeBranch, heads: Heads): boolean => {
  const canonical = head === undefined ? undefined : heads.at(head);
  return canonical !== undefined && headHash !== undefined && canonical.hash !== headHash;
};

/**
 * Returns the block that the node must have before and after its response, if the response contains no block hash.
 * For a request by number it is the requested block.
 * For a transaction without a block it is the view's newest block.
 * For a final block it is the finalized block, if the node is on another branch: that branch may begin below it.
 */
export const anchorBlock = (node: NodeBranch, { retention, block }: RpcRequest, heads: Heads): BlockId | undefined => {
  switch (RETENTION[retention].branchAnchor) {
    case "finalized":
      return isOnOtherBranch(node, heads) ? heads.finalized : undefined;
    case "latest":
      return heads.latest;
    case "requested":
      return hasHash(block) ? block : undefined;
    case undefined:
      return undefined;
  }
};

const hasHash = (block: RpcRequest["block"]): block is BlockId => block?.hash !== undefined;

/** Whether the response's block hash matches the request; `undefined` if it has none, or if the request expects none. */
export const matchesView = (
  { retention, block }: RpcRequest,
  { block: answered }: RpcResponse,
  heads: Heads,
): boolean | undefined => {
  if (answered === undefined) {
    return undefined;
  }
  const expected = RETENTION[retention].blockFrom === "response" ? heads.at(answered.number)?.hash : block?.hash;
  return expected === undefined ? undefined : answered.hash === expected;
};

/** Whether a node returned no receipts for a block that used gas: it has the header, but not yet the receipts. */
export const lacksReceipts = (body: Uint8Array, { blockField, block }: RpcRequest, heads: Heads): boolean => {
  if (blockField !== "firstBlockHash" || block === undefined || !isEmpty(body)) {
    return false;
  }
  const gasUsed = heads.header(block.number)?.gasUsed;
  return isQuantity(gasUsed) && BigInt(gasUsed) > 0n;
};

/** Whether a node has a block, another block at its number, or none; `unknown` if the read failed. */
export type BlockPresence = "present" | "replaced" | "missing" | "unknown";

/** Reads whether one node has a block. A read that starts after a response verifies that the response belongs to the block's branch. */
export class BlockPresences {
  readonly #node: BlockReader;
  readonly #signal = new AbortController().signal;
  readonly #waiting = new Map<Hash, Promise<BlockPresence>>();
  readonly #last = new Map<Hash, Promise<BlockPresence>>();

  constructor(node: BlockReader) {
    this.#node = node;
  }

  /** Calls during a read of the same block share the next read. */
  read(block: BlockId): Promise<BlockPresence> {
    return this.#waiting.get(block.hash) ?? this.#begin(block);
  }

  #begin(block: BlockId): Promise<BlockPresence> {
    const { hash } = block;
    const reading = (this.#last.get(hash) ?? Promise.resolve())
      .then(() => this.#send(block))
      .catch((): BlockPresence => "unknown")
      .finally(() => {
        if (this.#last.get(hash) === reading) {
          this.#last.delete(hash);
        }
      });
    this.#waiting.set(hash, reading);
    this.#last.set(hash, reading);
    return reading;
  }

  async #send({ number, hash }: BlockId): Promise<BlockPresence> {
    this.#waiting.delete(hash);
    const block = await readBlock(this.#node, number, this.#signal);
    if (block === undefined) {
      return "missing";
    }
    return block.block.hash === hash ? "present" : "replaced";
  }
}

/** The known facts about a response that was requested by number, or without a block. */
interface BranchFacts {
  readonly retention: RetentionClass;
  /** Whether the node has the anchor block before and after the response; undefined if that was not read. */
  readonly presence: BlockPresence | undefined;
  /** Whether the response's block hash is the view's; undefined if the response has none. */
  readonly matchesView: boolean | undefined;
  /** The response is empty although the object must exist. */
  readonly isMissing: boolean;
}

/**
 * `verified`: the response belongs to the view's branch. `unverified`: it may belong to another branch.
 * `undecided`: nothing is known against it. `otherBranch`: it must be rejected.
 * `missingBlock`: the node does not have the anchor block (yet).
 */
type BranchVerdict = "verified" | "unverified" | "undecided" | "otherBranch" | "missingBlock";

/** Decides whether a response belongs to the view's branch. */
export const decideBranch = ({ retention, presence, matchesView, isMissing }: BranchFacts): BranchVerdict => {
  const { branchAnchor, boundTo, cachesNull } = RETENTION[retention];
  if (presence === "replaced" || matchesView === false) {
    return "otherBranch";
  }
  // A node without the finalized block is on a branch that begins below it.
  if (presence === "missing") {
    return branchAnchor === "finalized" ? "otherBranch" : "missingBlock";
  }
  // A `null` that can be cached is a response of the view's branch. The pool decides whether it can be right.
  if ((isMissing && !cachesNull) || presence === "unknown") {
    return "unverified";
  }
  // A node may be several machines: the block of one does not verify the state that another one returned.
  const isVerified = matchesView ?? (presence === "present" && boundTo === "view");
  return isVerified ? "verified" : "undecided";
};

/** Only one of several machines behind the URL may lack support, so the mark expires. */
const UNSUPPORTED_MS = 600_000;
const MAX_UNSUPPORTED = 100;

/** Every node supports ByHash methods and a log filter's blockHash (EIP-234). Not every node supports EIP-1898. */
const needsProbe = (request: RpcRequest): boolean =>
  request.byHash?.method === request.method && request.method !== "eth_getLogs";

/** Whether the error is about the form of the request: the node may support the same request by number. */
export const isByHashRequest = (error: unknown, { method, byHash }: RpcRequest): boolean => {
  if (!(error instanceof NodeError)) {
    return false;
  }
  if (error.kind === "unsupportedMethod") {
    return byHash?.method !== method;
  }
  return error.kind === "tagUnsupported" || error.kind === "invalidParams";
};

/** The errors about the form of a request. A missing block or a lost connection says nothing about it. */
const FORM_ERRORS: ReadonlySet<NodeErrorKind> = new Set(["invalidParams", "tagUnsupported", "unsupportedMethod"]);

/** Whether one node supports requests by block hash, whose responses need no check of the branch. The first EIP-1898 request probes the node. */
export class ByHashSupport {
  readonly #node: Pick<VerifiedNode, "send">;
  readonly #unsupported = new LRUCache<string, true>({ max: MAX_UNSUPPORTED, ttl: UNSUPPORTED_MS });
  #isSupported: boolean | undefined;
  #probing: Promise<boolean> | undefined;

  constructor(node: Pick<VerifiedNode, "send">) {
    this.#node = node;
  }

  isSupported(request: RpcRequest, context: Context): Awaitable<boolean> {
    const hash = request.block?.hash;
    if (!request.byHash || hash === undefined || this.#unsupported.has(request.byHash.method)) {
      return false;
    }
    if (!needsProbe(request)) {
      return true;
    }
    if (this.#isSupported === undefined) {
      this.#probing ??= this.#probe(hash, context).finally(() => {
        this.#probing = undefined;
      });
      return this.#probing;
    }
    return this.#isSupported;
  }

  /** Marks a by-hash method as unsupported: the node answers by number, and rejects the request by hash. */
  markUnsupported(method: string): void {
    this.#unsupported.set(method, true);
  }

  async #probe(hash: string, context: Context): Promise<boolean> {
    try {
      await this.#node.send(
        createCall("eth_getBalance", [ZERO_ADDRESS, { blockHash: hash, requireCanonical: false }]),
        context,
      );
      this.#isSupported = true;
    } catch (error) {
      if (error instanceof NodeError && FORM_ERRORS.has(error.kind)) {
        this.#isSupported = false;
      }
    }
    return this.#isSupported ?? false;
  }
}
