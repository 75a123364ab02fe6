import { type BlockRead, blockNumberOrTagOrHash, blockRead } from "./blockRead.ts";
import { pendingReceipts } from "./pendingReads.ts";

export const blockReceipts: BlockRead = {
  name: "eth_getBlockReceipts",
  params: [blockNumberOrTagOrHash],
  kind: "block",
  pending: pendingReceipts,
  blockField: "firstBlockHash",
  nullIsError: true,
};

export const eth_getBlockReceipts = blockRead(blockReceipts);
