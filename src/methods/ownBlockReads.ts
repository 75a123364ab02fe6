import type { Context } from "../core/context.ts";
import type { BlockId, Heads, LinkedBlock } from "../core/heads.ts";
import { isAborted } from "../core/lazySignal.ts";
import type { BlockRange } from "../core/logRange.ts";
import { NodeError } from "../core/node.ts";
import { isNull, parsedResult, type RpcRequest, type RpcSource } from "../core/rpcSource.ts";
import { formatQuantity, type Hash, isHash } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";
import { resolveBlock } from "./blockParams.ts";
import { blockReadOf, requestAtBlock } from "./blockRead.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { blockByNumber, blockReceipts } from "./blockSpecs.ts";
import type { CanonicalJson } from "./paramSpec.ts";

// The reads of blocks and receipts that forebay sends itself, beside those of its clients.

/**
 * Creates the function that reads sealed blocks by number, oldest first. Blocks that no node has are left out, and those
 * that cannot be read now. A node on another branch may return other blocks than the canonical ones.
 */
export const blocksByNumber =
  (reads: RpcSource) =>
  async ({ from, to }: BlockRange, context: Context): Promise<readonly LinkedBlock[]> => {
    const readBlock = async (number: bigint): Promise<readonly LinkedBlock[]> => {
      const read = blockReadOf(blockByNumber, [formatQuantity(number), false]);
      const resolved = resolveBlock(read.parameter, context.view.heads);
      const block = parsedResult(await reads.request(requestAtBlock(read, resolved), context));
      return isFields(block) && isHash(block.hash) && isHash(block.parentHash)
        ? [{ number, hash: block.hash, parentHash: block.parentHash }]
        : [];
    };
    const numbers = Array.from({ length: Number(to - from) + 1 }, (_, index) => from + BigInt(index));
    const read = await Promise.allSettled(numbers.map(readBlock));
    if (isAborted(context)) {
      context.signal.throwIfAborted();
    }
    return read.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  };

const NAME = "eth_getBlockByHash";

/** The JSON fields of a block with the hashes of its transactions. */
type BlockFields = Readonly<Record<string, unknown>>;

/**
 * Creates the function that reads a block of any branch through the cache. It returns undefined if no node has the block.
 * It throws every other error: a node that is slow or limited may have the block.
 */
export const headerOf =
  (reads: RpcSource) =>
  async (hash: Hash, context: Context): Promise<BlockFields | undefined> => {
    const values = [hash, false] as const;
    const call = createCall(NAME, values);
    try {
      const response = await reads.request(
        { ...call, retention: "byHash", canonicalParams: JSON.stringify([NAME, values]), blockField: "hash" },
        context,
      );
      const block = parsedResult(response);
      return isFields(block) ? block : undefined;
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData") {
        return undefined;
      }
      throw error;
    }
  };

/**
 * Creates the function that reads the parent's hash of a block of any branch. It returns undefined if no node has the block.
 * It throws every other error: a node that is slow or limited may have the block.
 */
export const parentHashOf = (reads: RpcSource) => {
  const readHeader = headerOf(reads);
  return async (hash: Hash, context: Context): Promise<Hash | undefined> => {
    const block = await readHeader(hash, context);
    return isHash(block?.parentHash) ? block.parentHash : undefined;
  };
};

/**
 * Creates the function that reads a block's receipts through the cache. It returns undefined if no node has them, or if no root
 * verifies them.
 */
export const receiptsOf =
  (reads: RpcSource) =>
  async (
    block: { readonly hash: Hash } | { readonly number: bigint; readonly hash?: undefined },
    context: Context,
  ): Promise<Uint8Array | undefined> => {
    const read = blockReadOf(blockReceipts, [block.hash ?? formatQuantity(block.number)]);
    const request = requestAtBlock(read, resolveBlock(read.parameter, context.view.heads));
    try {
      const response = await reads.request(request, context);
      const isVerified = response.grade !== undefined && !isNull(response);
      return isVerified && response.body instanceof Uint8Array ? response.body : undefined;
    } catch {
      context.signal.throwIfAborted();
      return undefined;
    }
  };

const LATEST = { tag: "latest" } as const;
/** Returns the request for a canonical block with full transactions. */
export const fullBlockRequest = ({ number, hash }: BlockId): RpcRequest => {
  const read = blockReadOf(blockByNumber, [formatQuantity(number), true]);
  return requestAtBlock(read, { kind: "recent", number, hash });
};

/** Returns the most frequent requests for a new head, for the head prefetch: its receipts, and its block in both forms. */
export const prefetchRequests = (
  heads: Heads,
): { readonly receipts: RpcRequest; readonly block: RpcRequest; readonly fullBlock: RpcRequest } => {
  const block = resolveBlock(LATEST, heads);
  const requestAt = (spec: BlockReadSpec, ...rest: readonly CanonicalJson[]) =>
    requestAtBlock(blockReadOf(spec, [LATEST.tag, ...rest]), block);
  return {
    receipts: requestAt(blockReceipts),
    block: requestAt(blockByNumber, false),
    fullBlock: requestAt(blockByNumber, true),
  };
};
