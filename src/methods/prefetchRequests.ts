import type { Heads } from "../core/heads.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { type BlockRead, requestAtBlock } from "./blockRead.ts";
import { blockByNumber } from "./eth_getBlockByNumber.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import { resolveBlock } from "./resolveBlock.ts";

const LATEST = { tag: "latest" } as const;
const BLOCK = 0;

/** What most ask of a new head: its receipts, and its block in both forms. */
export const prefetchRequests = (
  heads: Heads,
): { readonly receipts: RpcRequest; readonly block: RpcRequest; readonly fullBlock: RpcRequest } => {
  const at = (entry: BlockRead, ...rest: readonly CanonicalJson[]) =>
    requestAtBlock(entry, [LATEST.tag, ...rest], BLOCK, LATEST, resolveBlock(LATEST, heads));
  return { receipts: at(blockReceipts), block: at(blockByNumber, false), fullBlock: at(blockByNumber, true) };
};
