import { blockNumberOrTag } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { orNull, readBoolean, required } from "./paramSpec.ts";
import { pendingBlock } from "./pendingReads.ts";

export const fullTransactions = required("fullTransactions", orNull(readBoolean, false));

export const blockByNumber: BlockReadSpec = {
  name: "eth_getBlockByNumber",
  params: [blockNumberOrTag, fullTransactions],
  kind: "block",
  isSlow: true,
  byHashMethod: "eth_getBlockByHash",
  blockField: "hash",
  nullIsError: true,
  pending: pendingBlock,
};

/** Returns a block with transaction hashes or full transactions, or null (docs/service.md, eth_getBlockByNumber). */
export const eth_getBlockByNumber = blockRead(blockByNumber);
