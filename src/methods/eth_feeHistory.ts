import { parseBlockNumberOrTag } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { blockNumberOrTag } from "./blockReads.ts";
import type { Method } from "./chain.ts";
import { inTrueView } from "./inTrueView.ts";
import { listOf, optional, readCount, readNumber, required } from "./reader.ts";
import { readParams } from "./readParams.ts";
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
    const values = readParams(call.params, params);
    const newestBlock = parseBlockNumberOrTag(values[1], "newestBlock");
    return inTrueView(chain, context, async (at) => {
      const newest = resolveBlock(newestBlock, at.view.heads);
      if (!("number" in newest) || newest.kind === "aboveHead") {
        const pending = newest.kind === "pending" ? at.view.pending?.mode : undefined;
        const answer = await chain.reads.request({ ...createCall(name, values), lifetime: "never", subject: "" }, at);
        return { ...answer, ...(pending && { pending }) };
      }
      const resolved = values.with(1, formatQuantity(newest.number));
      const question = { ...createCall(name, resolved), subject: JSON.stringify([name, resolved]), block: newest };
      return chain.reads.request({ ...question, lifetime: newest.kind === "final" ? "final" : "head" }, at);
    });
  },
};
