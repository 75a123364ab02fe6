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
  byHashMethod: "eth_getBlockByHash",
  blockField: "hash",
  nullIsError: true,
  pending: pendingBlock,
};

/** Contract 4.2: block object with transaction hashes or full transactions, or null. */
export const eth_getBlockByNumber = blockRead(blockByNumber);
