import type { RequestBlock, RetentionClass } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { formatBlockParameter } from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import type { ParsedRead } from "./parsedReads.ts";
import { headerNotFound, type ResolvedBlock } from "./resolveBlock.ts";

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

/** Returns the request to the nodes, with its retention class. Throws RpcError if the block is above the head. */
export const requestAtBlock = (read: BlockReadInput, block: ResolvedBlock): RpcRequest => {
  switch (block.kind) {
    case "pending":
    case "tagUnavailable":
      return uncached(read, requestedBlock(read));
    case "hash":
      return atHash(read);
    case "aboveHead":
      throw headerNotFound();
    case "outsideRing":
      return atNumber(read, formatQuantity(block.number), "never", block);
    case "final": {
      const { parameter } = read;
      const value = canonicalOnly(parameter) ? formatBlockParameter(parameter) : formatQuantity(block.number);
      return atNumber(read, value, "final", block);
    }
    case "recent":
      return atRecent(read, block);
  }
};

const canonicalOnly = (block: BlockParameter): boolean => "hash" in block && block.requireCanonical;

const requestedBlock = ({ values, position }: BlockReadInput): CanonicalJson => values[position] ?? null;

/** A request with this block parameter whose response is never cached. */
const uncached = ({ spec, values, position, canonicalParams }: BlockReadInput, value: CanonicalJson): RpcRequest => ({
  method: spec.name,
  params: values.with(position, value),
  retention: "never",
  canonicalParams,
});

/** Without spreads, because each miss of a read at a block creates one. */
const atNumber = (
  { spec, values, position, canonicalParams }: BlockReadInput,
  value: CanonicalJson,
  retention: RetentionClass,
  block: RequestBlock,
): RpcRequest => {
  const request: Writable<RpcRequest> = {
    method: spec.name,
    params: values.with(position, value),
    retention,
    canonicalParams,
    block,
  };
  if (spec.blockField !== undefined) {
    request.blockField = spec.blockField;
  }
  if (spec.nullIsError === true) {
    request.nullIsError = true;
  }
  return request;
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A read at a hash that is not in the block ring. */
const atHash = (read: BlockReadInput): RpcRequest => {
  const { spec, values, position, parameter } = read;
  const request = uncached(read, requestedBlock(read));
  // A read with requireCanonical has no result once the block is not canonical any more.
  if (spec.kind === "state" || canonicalOnly(parameter)) {
    return request;
  }
  const canonicalParams = JSON.stringify([spec.name, values.with(position, formatBlockParameter(parameter))]);
  return { ...request, retention: "byHash", canonicalParams };
};

const atRecent = (read: BlockReadInput, block: Extract<ResolvedBlock, { readonly kind: "recent" }>): RpcRequest => {
  const { spec, values, position, parameter } = read;
  const retention = spec.kind === "state" ? "recentState" : "recent";
  const request: Writable<RpcRequest> = atNumber(read, formatQuantity(block.number), retention, block);
  if (spec.byNumberOnly === true) {
    return request;
  }
  request.byHash = spec.byHashMethod
    ? createCall(spec.byHashMethod, values.with(position, block.hash))
    : createCall(
        spec.name,
        values.with(position, canonicalOnly(parameter) ? formatBlockParameter(parameter) : { blockHash: block.hash }),
      );
  return request;
};
