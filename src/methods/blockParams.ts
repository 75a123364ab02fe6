import type { BlockId, Heads } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import { readBlockNumberOrTag, readBlockNumberOrTagOrHash } from "../core/paramReaders.ts";
import { isMissingBlock } from "../core/retryPolicy.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import { formatQuantity, type Hash } from "../ethereum/hex.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { type CanonicalJson, optional, type ParamSpec, type Parser, required } from "./paramSpec.ts";

/** The name of the block parameter. */
export const READ_BLOCK = "block";

/** Length of a hash in hex. A canonical number is shorter, because it has 63 bits. */
const HASH_LENGTH = 66;

/** Formats a block parameter in its canonical form, which can be parsed again without loss. */
export const formatBlockParameter = (block: BlockParameter): CanonicalJson => {
  if ("tag" in block) {
    return block.tag;
  }
  if ("number" in block) {
    return formatQuantity(block.number);
  }
  return block.requireCanonical ? { blockHash: block.hash, requireCanonical: true } : { blockHash: block.hash };
};

/** Returns the block parameter of a canonical form, which was validated when the form was created. */
export const blockOfCanonical = (value: CanonicalJson | undefined): BlockParameter => {
  if (typeof value !== "string") {
    return readBlockNumberOrTagOrHash(value, READ_BLOCK);
  }
  if (!value.startsWith("0x")) {
    return readBlockNumberOrTag(value, READ_BLOCK);
  }
  return value.length === HASH_LENGTH
    ? { hash: `0x${value.slice(2)}`, requireCanonical: false }
    : { number: BigInt(value) };
};

const readNumberOrTag: Parser = (value, name) => formatBlockParameter(readBlockNumberOrTag(value, name));
/** A hash string stays a string, because not every node accepts both forms. */
const readNumberOrTagOrHash: Parser = (value, name) => {
  const block = readBlockNumberOrTagOrHash(value, name);
  return typeof value === "string" && "hash" in block ? block.hash : formatBlockParameter(block);
};

export const blockNumberOrTag: ParamSpec = required(READ_BLOCK, readNumberOrTag);
export const blockNumberOrTagOrHash: ParamSpec = required(READ_BLOCK, readNumberOrTagOrHash);
/** An optional block parameter; the default is `latest` (docs/answers.md, Blocks and pending). */
export const stateBlock: ParamSpec = optional(READ_BLOCK, readNumberOrTagOrHash, "latest");

/** A block parameter, resolved in one view. */
export type ResolvedBlock =
  | { readonly kind: "pending" }
  /** At or below the finalized head. */
  | { readonly kind: "final"; readonly number: bigint; readonly hash?: Hash }
  /** Sealed, above the finalized head, and in the block ring. */
  | { readonly kind: "recent"; readonly number: bigint; readonly hash: Hash }
  /** Sealed, above the finalized head, and below the block ring. */
  | { readonly kind: "outsideRing"; readonly number: bigint }
  | { readonly kind: "aboveHead"; readonly number: bigint }
  /** A hash that is not in the block ring: the block may be old, or on another branch. */
  | { readonly kind: "hash"; readonly hash: Hash }
  /** `safe` or `finalized`, and no node has reported that block. */
  | { readonly kind: "tagUnavailable"; readonly tag: "safe" | "finalized" };

/** Resolves a block parameter in one view, without a request. */
export const resolveBlock = (block: BlockParameter, heads: Heads): ResolvedBlock => {
  if ("number" in block) {
    return resolveNumber(block.number, heads);
  }
  if ("hash" in block) {
    return resolveHash(block.hash, heads);
  }
  switch (block.tag) {
    case "pending":
      return { kind: "pending" };
    case "latest":
      return resolveNumber(heads.latest.number, heads);
    case "earliest":
      return resolveNumber(0n, heads);
    case "safe":
    case "finalized": {
      const head = heads[block.tag];
      return head ? resolveNumber(head.number, heads) : { kind: "tagUnavailable", tag: block.tag };
    }
  }
};

const resolveNumber = (number: bigint, heads: Heads): ResolvedBlock => {
  if (number > heads.latest.number) {
    return { kind: "aboveHead", number };
  }
  const hash = heads.at(number)?.hash;
  if (heads.finalized !== undefined && number <= heads.finalized.number) {
    return hash === undefined ? { kind: "final", number } : { kind: "final", number, hash };
  }
  return hash === undefined ? { kind: "outsideRing", number } : { kind: "recent", number, hash };
};

/** Limit of the search for a hash, from the head down: clients usually request recent blocks by hash. */
const MAX_SEARCHED_BLOCKS = 256n;

const resolveHash = (hash: Hash, heads: Heads): ResolvedBlock => {
  const { latest, oldest } = heads;
  const end = latest.number - oldest < MAX_SEARCHED_BLOCKS ? oldest : latest.number - MAX_SEARCHED_BLOCKS;
  for (let number = latest.number; number >= end; number--) {
    if (heads.at(number)?.hash === hash) {
      return resolveNumber(number, heads);
    }
  }
  return { kind: "hash", hash };
};

/** Whether the block is in the block ring, so that its hash is known. */
export const isInRing = (block: ResolvedBlock): block is ResolvedBlock & BlockId =>
  (block.kind === "recent" || block.kind === "final") && block.hash !== undefined;

/** The error of every state read at an unknown block (docs/answers.md, Blocks and pending). */
export const headerNotFound = (): RpcError => new RpcError(CODES.SERVER, "header not found");

/** Throws one error for an unknown block, because each node has its own message. Other errors are rethrown. */
export const throwUnknownBlock = (error: unknown): never => {
  const isUnknown = error instanceof NodeError && error.kind === "missingData" && isMissingBlock(error.message);
  throw isUnknown ? headerNotFound() : error;
};
