import { type BlockRead, blockNumberOrTagOrHash, blockRead } from "./blockReads.ts";
import { pendingReceipts } from "./pendingReads.ts";

export const blockReceipts: BlockRead = {
  name: "eth_getBlockReceipts",
  params: [blockNumberOrTagOrHash],
  kind: "block",
  pending: pendingReceipts,
  tells: "firstBlockHash",
  mustExist: true,
};

export const eth_getBlockReceipts = blockRead(blockReceipts);
