import { formatQuantity } from "../ethereum/hex.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./parseParams.ts";

const encoder = new TextEncoder();

/** Answered from the chain's known identity: no node is asked, so that none can answer for another chain. */
const fromIdentity = (name: string, format: (chainId: bigint) => string): Method => ({
  name,
  kept: "computed",
  atPending: "none",
  answer: async ({ chain, call }) => {
    parseParams(call.params, []);
    return { body: encoder.encode(JSON.stringify(format(chain.chainId))), status: { hit: "view" } };
  },
});

export const eth_chainId = fromIdentity("eth_chainId", formatQuantity);
/** The network id, in decimal; on all chains that are served here it is the chain id. */
export const net_version = fromIdentity("net_version", String);
