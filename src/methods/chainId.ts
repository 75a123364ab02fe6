import { formatQuantity } from "../ethereum/hex.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./parseParams.ts";

const encoder = new TextEncoder();

/** Returns the chain's known id; no request is sent, so that no node can answer for another chain. */
const fromIdentity = (name: string, format: (chainId: bigint) => string): Method => ({
  name,
  retention: "computed",
  atPending: "none",
  handle: async ({ chain, call }) => {
    parseParams(call.params, []);
    return { body: encoder.encode(JSON.stringify(format(chain.chainId))), status: { hit: "view" } };
  },
});

export const eth_chainId = fromIdentity("eth_chainId", formatQuantity);
/** Returns the network id in decimal. On all supported chains it equals the chain id. */
export const net_version = fromIdentity("net_version", String);
