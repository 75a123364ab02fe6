import { parseBlockNumberOrTag } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { blockNumberOrTag } from "./blockParams.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Method } from "./method.ts";
import { listOf, optional, readCount, readNumber, required } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";
import { resolveBlock } from "./resolveBlock.ts";

const name = "eth_feeHistory";
/** Nodes get a list: geth requires the parameter, and some nodes reject `null`. */
const percentiles = optional("rewardPercentiles", listOf(readNumber), []);
const params = [required("blockCount", readCount), blockNumberOrTag, percentiles];

/** The method has no form by hash, and its result has no hash. Above the finalized head, it is cached until the next head. */
export const eth_feeHistory: Method = {
  name,
  retention: "head",
  atPending: "node",
  handle: async ({ chain, call, context }) => {
    const values = parseParams(call.params, params);
    const newestBlock = parseBlockNumberOrTag(values[1], "newestBlock");
    return retryOnBranchChange(chain, context, async (at) => {
      const newest = resolveBlock(newestBlock, at.view.heads);
      if (!("number" in newest) || newest.kind === "aboveHead") {
        const pending = newest.kind === "pending" ? at.view.pending?.mode : undefined;
        const response = await chain.reads.request(
          { ...createCall(name, values), retention: "never", canonicalParams: "" },
          at,
        );
        return { ...response, ...(pending && { pending }) };
      }
      const resolved = values.with(1, formatQuantity(newest.number));
      const request = {
        ...createCall(name, resolved),
        canonicalParams: JSON.stringify([name, resolved]),
        block: newest,
      };
      return chain.reads.request({ ...request, retention: newest.kind === "final" ? "final" : "head" }, at);
    });
  },
};
