import { parseBlockNumberOrTag } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { blockNumberOrTag } from "./blockRead.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Method } from "./method.ts";
import { listOf, optional, readCount, readNumber, required } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";
import { resolveBlock } from "./resolveBlock.ts";

const name = "eth_feeHistory";
/** Nodes are sent a list: geth requires the parameter, and some nodes accept no `null`. */
const percentiles = optional("rewardPercentiles", listOf(readNumber), []);
const params = [required("blockCount", readCount), blockNumberOrTag, percentiles];

/** It cannot be asked by hash nor does its answer hold one: above the finalized head it is kept until the next head. */
export const eth_feeHistory: Method = {
  name,
  kept: "head",
  atPending: "node",
  answer: async ({ chain, call, context }) => {
    const values = parseParams(call.params, params);
    const newestBlock = parseBlockNumberOrTag(values[1], "newestBlock");
    return retryOnBranchChange(chain, context, async (at) => {
      const newest = resolveBlock(newestBlock, at.view.heads);
      if (!("number" in newest) || newest.kind === "aboveHead") {
        const pending = newest.kind === "pending" ? at.view.pending?.mode : undefined;
        const answer = await chain.reads.request(
          { ...createCall(name, values), retention: "never", canonicalParams: "" },
          at,
        );
        return { ...answer, ...(pending && { pending }) };
      }
      const resolved = values.with(1, formatQuantity(newest.number));
      const question = {
        ...createCall(name, resolved),
        canonicalParams: JSON.stringify([name, resolved]),
        block: newest,
      };
      return chain.reads.request({ ...question, retention: newest.kind === "final" ? "final" : "head" }, at);
    });
  },
};
