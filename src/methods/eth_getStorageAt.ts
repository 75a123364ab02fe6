import { blockRead, stateBlock } from "./blockRead.ts";
import { readAddress, readSlot, required } from "./paramSpec.ts";
import { pendingStorage } from "./pendingReads.ts";

/** Contract 4.5: the slot's value, 32 bytes. */
export const eth_getStorageAt = blockRead({
  name: "eth_getStorageAt",
  params: [required("address", readAddress), required("position", readSlot), stateBlock],
  kind: "state",
  pending: pendingStorage,
});
