import { blockNumberOrTag, blockNumberOrTagOrHash } from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { orNull, readBoolean, required } from "./paramSpec.ts";
import { readPendingBlock, readPendingReceipts } from "./pendingReads.ts";

export const fullTransactions = required("fullTransactions", orNull(readBoolean, false));

/** Reads a block with transaction hashes or full transactions, or null (docs/methods.md, Block object). */
export const blockByNumber: BlockReadSpec = {
  name: "eth_getBlockByNumber",
  params: [blockNumberOrTag, fullTransactions],
  kind: "block",
  isSlow: true,
  byHashMethod: "eth_getBlockByHash",
  prove: { byBlock: "block" },
  blockField: "hash",
  nullIsError: true,
  pending: readPendingBlock,
};

export const blockReceipts: BlockReadSpec = {
  name: "eth_getBlockReceipts",
  params: [blockNumberOrTagOrHash],
  kind: "block",
  isSlow: true,
  pending: readPendingReceipts,
  prove: { byBlock: "receipts" },
  blockField: "firstBlockHash",
  nullIsError: true,
};
