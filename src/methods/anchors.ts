import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";

/** A call whose answer is proven by a block. */
interface AnchoredCall {
  readonly chain: { readonly ownHashes: Pick<OwnHashes, "hasComputed"> };
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
 * Whether the head commits to the block: the hash of each header down to it was computed, and has the next one as parent. A header
 * with unknown fields, which may have another parent, can be in the block ring.
 */
export const isCommittedBy = (
  heads: Pick<Heads, "latest" | "header">,
  { number, hash }: BlockId,
  ownHashes: Pick<OwnHashes, "hasComputed">,
): boolean => {
  let expected = heads.latest.hash;
  if (heads.latest.number - number >= MAX_DEPTH) {
    return false;
  }
  for (let at = heads.latest.number; at >= number; at--) {
    const header = heads.header(at);
    if (header === undefined || lowerHash(header.hash) !== expected || !ownHashes.hasComputed(header)) {
      return false;
    }
    if (at === number) {
      return expected === hash;
    }
    expected = lowerHash(header.parentHash);
  }
  return false;
};

/** Whether the head of the chain commits to the block. With confirmations, that of the view is only its ancestor in the ring. */
export const isCommitted: Anchor<"chain" | "context"> = (block, { chain, context }) =>
  isCommittedBy((context.behind?.actual ?? context.view).heads, block, chain.ownHashes);

/** Whether the call names the block by its hash. */
const isNamed: Anchor<"call"> = (block, { call }) => call.params.some((param) => namesHash(param, block.hash));

/** Calls at blocks that are not agreed fail before. */
const ANCHORS: readonly Anchor[] = [isNamed, isCommitted];

/** Whether the client believes the block without a proof. */
export const isAnchored: Anchor = (block, proven) => ANCHORS.some((anchor) => anchor(block, proven));
