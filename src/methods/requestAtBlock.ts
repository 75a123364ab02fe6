import type { RpcRequest } from "../core/rpcSource.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { formatBlock } from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import type { ParsedRead } from "./parsedReads.ts";
import type { ResolvedBlock } from "./resolveBlock.ts";

/** One call of a block read. */
export interface BlockReadInput extends ParsedRead {
  readonly spec: BlockReadSpec;
  /** Index of the block parameter in `values`. */
  readonly position: number;
}

/** Adds the canonical params, without the block, to the parsed parameters. */
export const withCanonicalParams = (read: Omit<BlockReadInput, "canonicalParams">): BlockReadInput => ({
  ...read,
  canonicalParams: JSON.stringify([read.spec.name, read.values.with(read.position, null)]),
});

/** Returns the request to the nodes, with its retention class, for a read at a resolved block. */
export const requestAtBlock = (read: BlockReadInput, block: ResolvedBlock): RpcRequest => {
  switch (block.kind) {
    case "pending":
    case "tagUnavailable":
      return { ...withParameter(read), retention: "never", canonicalParams: read.canonicalParams };
    case "hash":
      return atHash(read);
    case "aboveHead":
      return {
        ...withBlock(read, formatQuantity(block.number)),
        retention: "never",
        canonicalParams: read.canonicalParams,
      };
    case "outsideRing":
      return { ...withBlock(read, formatQuantity(block.number)), ...commonFields(read), retention: "never", block };
    case "final": {
      const { parameter } = read;
      const value = canonicalOnly(parameter) ? formatBlock(parameter) : formatQuantity(block.number);
      return { ...withBlock(read, value), ...commonFields(read), retention: "final", block };
    }
    case "recent":
      return atRecent(read, block);
  }
};

const canonicalOnly = (block: BlockParameter): boolean => "hash" in block && block.requireCanonical;

const withBlock = ({ spec, values, position }: BlockReadInput, value: CanonicalJson): Call =>
  createCall(spec.name, values.with(position, value));

const withParameter = (read: BlockReadInput): Call => withBlock(read, read.values[read.position] ?? null);

const commonFields = (read: BlockReadInput): Pick<RpcRequest, "canonicalParams" | "blockField" | "nullIsError"> => ({
  canonicalParams: read.canonicalParams,
  ...(read.spec.blockField && { blockField: read.spec.blockField }),
  ...(read.spec.nullIsError && { nullIsError: true }),
});

/** A read at a hash that is not in the block ring. */
const atHash = (read: BlockReadInput): RpcRequest => {
  const { spec, values, position, parameter } = read;
  const call = withParameter(read);
  // A read with requireCanonical has no result once the block is not canonical any more.
  if (spec.kind === "state" || canonicalOnly(parameter)) {
    return { ...call, retention: "never", canonicalParams: read.canonicalParams };
  }
  const canonicalParams = JSON.stringify([spec.name, values.with(position, formatBlock(parameter))]);
  return { ...call, retention: "byHash", canonicalParams };
};

const atRecent = (read: BlockReadInput, block: Extract<ResolvedBlock, { readonly kind: "recent" }>): RpcRequest => {
  const { spec, values, position, parameter } = read;
  const retention = spec.kind === "state" ? "recentState" : "recent";
  const byNumber = withBlock(read, formatQuantity(block.number));
  if (spec.byNumberOnly) {
    return { ...byNumber, ...commonFields(read), retention, block };
  }
  const byHash = spec.byHashMethod
    ? createCall(spec.byHashMethod, values.with(position, block.hash))
    : withBlock(read, canonicalOnly(parameter) ? formatBlock(parameter) : { blockHash: block.hash });
  return { ...byNumber, ...commonFields(read), retention, block, byHash };
};
