import { formatQuantity } from "../ethereum/hex.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./parseParams.ts";

const encoder = new TextEncoder();

/** Returns the head of the request's view; no request is sent. */
export const eth_blockNumber: Method = {
  name: "eth_blockNumber",
  retention: "computed",
  atPending: "none",
  handle: async ({ call, context }) => {
    parseParams(call.params, []);
    const { number, hash } = context.view.heads.latest;
    return {
      body: encoder.encode(JSON.stringify(formatQuantity(number))),
      status: { hit: "view" },
      block: { number, hash },
    };
  },
};
