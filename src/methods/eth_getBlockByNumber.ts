import { type BlockRead, blockNumberOrTag, blockRead } from "./blockReads.ts";
import { pendingBlock } from "./pendingReads.ts";
import { orNull, readBoolean, required } from "./reader.ts";

export const fullTransactions = required("fullTransactions", orNull(readBoolean, false));

export const blockByNumber: BlockRead = {
  name: "eth_getBlockByNumber",
  params: [blockNumberOrTag, fullTransactions],
  kind: "block",
  byHashMethod: "eth_getBlockByHash",
  tells: "hash",
  mustExist: true,
  pending: pendingBlock,
};

/** Contract 4.2: block object with transaction hashes or full transactions, or null. */
export const eth_getBlockByNumber = blockRead(blockByNumber);
