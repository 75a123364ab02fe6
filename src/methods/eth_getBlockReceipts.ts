import { blockNumberOrTagOrHash } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { pendingReceipts } from "./pendingReads.ts";

export const blockReceipts: BlockReadSpec = {
  name: "eth_getBlockReceipts",
  params: [blockNumberOrTagOrHash],
  kind: "block",
  isSlow: true,
  pending: pendingReceipts,
  blockField: "firstBlockHash",
  nullIsError: true,
};

export const eth_getBlockReceipts = blockRead(blockReceipts);
