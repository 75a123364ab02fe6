import { blockRead, stateBlock } from "./blockReads.ts";
import { pendingNonce, raiseNonce } from "./pendingReads.ts";
import { readAddress, required } from "./reader.ts";

/** Contract 4.6: the account's nonce, a quantity. */
export const eth_getTransactionCount = blockRead({
  name: "eth_getTransactionCount",
  params: [required("address", readAddress), stateBlock],
  kind: "state",
  pending: pendingNonce,
  raise: raiseNonce,
});
