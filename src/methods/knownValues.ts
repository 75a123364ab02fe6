import { formatQuantity } from "../ethereum/hex.ts";
import { formatJson } from "../json/jsonBytes.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./paramSpec.ts";

/** Returns the head of the request's view; no request is sent. */
export const eth_blockNumber: Method = {
  name: "eth_blockNumber",
  retention: "computed",
  atPending: "none",
  handle: async ({ call, context }) => {
    parseParams(call.params, []);
    const { number, hash } = context.view.heads.latest;
    return {
      body: formatJson(formatQuantity(number)),
      status: { hit: "view" },
      block: { number, hash },
    };
  },
};

/** Returns the chain's known id; no request is sent, so that no node can answer for another chain. */
const fromIdentity = (name: string, format: (chainId: bigint) => string): Method => ({
  name,
  retention: "computed",
  atPending: "none",
  handle: async ({ chain, call }) => {
    parseParams(call.params, []);
    return { body: formatJson(format(chain.chainId)), status: { hit: "view" } };
  },
});

export const eth_chainId = fromIdentity("eth_chainId", formatQuantity);
/** Returns the network id in decimal. On all supported chains it equals the chain id. */
export const net_version = fromIdentity("net_version", String);
