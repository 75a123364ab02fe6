import { stateBlock } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import { stateRead } from "./blockReadSpec.ts";
import { readAddress, required } from "./paramSpec.ts";
import { readPendingBalance } from "./pendingReads.ts";

/** Returns the account's balance in wei, a quantity. */
export const eth_getBalance = blockRead({
  name: "eth_getBalance",
  params: [required("address", readAddress), stateBlock],
  kind: "state",
  stateRead: stateRead("eth_getBalance", "balance"),
  prove: { byProof: "balance" },
  pending: readPendingBalance,
});
