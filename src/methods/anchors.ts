import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";

/** A call whose answer is proven by a block. */
interface AnchoredCall {
  readonly chain: { readonly committed: Pick<CommittedBlocks, "has"> };
  readonly call: Call;
  /** Its view has no pending blocks. */
  readonly context: Context;
}

/**
 * Whether a client believes the block that its answer is proven by: an agreed head commits to it, or the client named its hash.
 * The head that a light client has verified would be a third anchor.
 */
type Anchor<Needs extends keyof AnchoredCall = keyof AnchoredCall> = (
  block: BlockId,
  proven: Pick<AnchoredCall, Needs>,
) => boolean;

/** Formats a hash of a node in lower case. */
export const lowerHash = (hash: unknown): Hash => `0x${String(hash).slice(2).toLowerCase()}`;

/** With `requireCanonical` (EIP-1898), the hash alone is not enough. */
const namesHash = (param: unknown, hash: Hash): boolean =>
  typeof param === "string"
    ? param.toLowerCase() === hash
    : isFields(param) && param.requireCanonical !== true && namesHash(param.blockHash, hash);

/** The newest blocks whose headers are known. */
const MAX_DEPTH = 256n;

/**
 * The blocks to which the head of a chain commits. The hash of each header down to them was computed, and has the next one as parent.
 * A header with unknown fields, which may have another parent, can be in the block ring. Each header is looked at once for a head.
 */
export class CommittedBlocks {
  readonly #ownHashes: Pick<OwnHashes, "hasComputed">;
  #head: Hash | undefined;
  /** The hashes of the head and of its ancestors, as far as a block was searched. */
  #hashes: Hash[] = [];
  #parentHash: Hash | undefined;

  constructor(ownHashes: Pick<OwnHashes, "hasComputed">) {
    this.#ownHashes = ownHashes;
  }

  has(heads: Pick<Heads, "latest" | "header">, { number, hash }: BlockId): boolean {
    const { latest } = heads;
    const depth = latest.number - number;
    if (depth < 0n || depth >= MAX_DEPTH) {
      return false;
    }
    if (latest.hash !== this.#head) {
      this.#head = latest.hash;
      this.#hashes = [];
      this.#parentHash = latest.hash;
    }
    let isLinked = true;
    while (isLinked && this.#hashes.length <= depth) {
      isLinked = this.#follow(heads);
    }
    return this.#hashes[Number(depth)] === hash;
  }

  /** Adds the next ancestor. Returns false if its header does not commit to it. */
  #follow({ latest, header }: Pick<Heads, "latest" | "header">): boolean {
    const found = header(latest.number - BigInt(this.#hashes.length));
    if (found === undefined || lowerHash(found.hash) !== this.#parentHash || !this.#ownHashes.hasComputed(found)) {
      return false;
    }
    this.#hashes.push(this.#parentHash);
    this.#parentHash = lowerHash(found.parentHash);
    return true;
  }
}

/** Whether the head of the chain commits to the block. With confirmations, that of the view is only its ancestor in the ring. */
export const isCommitted: Anchor<"chain" | "context"> = (block, { chain, context }) =>
  chain.committed.has((context.behind?.actual ?? context.view).heads, block);

/** Whether the call names the block by its hash. */
const isNamed: Anchor<"call"> = (block, { call }) => call.params.some((param) => namesHash(param, block.hash));

/** Calls at blocks that are not agreed fail before. */
const ANCHORS: readonly Anchor[] = [isNamed, isCommitted];

/** Whether the client believes the block without a proof. */
export const isAnchored: Anchor = (block, proven) => ANCHORS.some((anchor) => anchor(block, proven));
