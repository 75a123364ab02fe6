import type { BlockId, Heads } from "../core/heads.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { blockByNumber } from "./eth_getBlockByNumber.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import { requestAtBlock, withCanonicalParams } from "./requestAtBlock.ts";
import { resolveBlock } from "./resolveBlock.ts";

const LATEST = { tag: "latest" } as const;
const BLOCK = 0;

/** Returns the request for a canonical block with full transactions. */
export const fullBlockRequest = ({ number, hash }: BlockId): RpcRequest => {
  const values = [formatQuantity(number), true];
  const read = withCanonicalParams({ spec: blockByNumber, values, position: BLOCK, parameter: { number } });
  return requestAtBlock(read, { kind: "recent", number, hash });
};

/** Returns the most frequent requests for a new head, for the head prefetch: its receipts, and its block in both forms. */
export const prefetchRequests = (
  heads: Heads,
): { readonly receipts: RpcRequest; readonly block: RpcRequest; readonly fullBlock: RpcRequest } => {
  const block = resolveBlock(LATEST, heads);
  const requestAt = (spec: BlockReadSpec, ...rest: readonly CanonicalJson[]) =>
    requestAtBlock(
      withCanonicalParams({ spec, values: [LATEST.tag, ...rest], position: BLOCK, parameter: LATEST }),
      block,
    );
  return {
    receipts: requestAt(blockReceipts),
    block: requestAt(blockByNumber, false),
    fullBlock: requestAt(blockByNumber, true),
  };
};
