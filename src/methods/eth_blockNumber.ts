import { formatQuantity } from "../ethereum/hex.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./parseParams.ts";

const encoder = new TextEncoder();

/** The head that every other answer of this request is measured against; no node is asked. */
export const eth_blockNumber: Method = {
  name: "eth_blockNumber",
  kept: "computed",
  atPending: "none",
  answer: async ({ call, context }) => {
    parseParams(call.params, []);
    const { number, hash } = context.view.heads.latest;
    return {
      body: encoder.encode(JSON.stringify(formatQuantity(number))),
      status: { hit: "view" },
      block: { number, hash },
    };
  },
};
