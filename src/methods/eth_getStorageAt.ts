import { stateBlock } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import { readAddress, readSlot, required } from "./paramSpec.ts";
import { pendingStorage } from "./pendingReads.ts";
import { stateRead } from "./stateRead.ts";

/** Returns a slot's value, 32 bytes (docs/service.md, eth_getStorageAt). */
export const eth_getStorageAt = blockRead({
  name: "eth_getStorageAt",
  params: [required("address", readAddress), required("position", readSlot), stateBlock],
  kind: "state",
  stateRead: stateRead("eth_getStorageAt", "slot"),
  pending: pendingStorage,
});
