import type { Context } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import { readBlockNumberOrTag } from "../core/paramReaders.ts";
import { isNotYet } from "../core/retryPolicy.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import { formatQuantity, isQuantity } from "../ethereum/hex.ts";
import { asText } from "../json/jsonBytes.ts";
import { elements, members } from "../json/members.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { blockNumberOrTag, resolveBlock } from "./blockParams.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Method, MethodChain } from "./method.ts";
import { arrayOf, optional, parseParams, readCount, readNumber, required } from "./paramSpec.ts";

const name = "eth_feeHistory";
const NO_BLOCKS = "0x0";
/** Nodes get a list: geth requires the parameter, and some nodes reject `null`. */
const percentiles = optional("rewardPercentiles", arrayOf(readNumber), []);
const params = [required("blockCount", readCount), blockNumberOrTag, percentiles];

/**
 * Whether a fee history ends below its newest block: the node does not have that block's fees yet. `gasUsedRatio` has one item
 * per block (https://github.com/ethereum/execution-apis, eth_feeHistory).
 */
const endsBelow = (body: Uint8Array, newest: bigint): boolean => {
  const fields = new Map([...members(body)].map(({ key, value }) => [key, value]));
  const [quoted, ratios] = [fields.get("oldestBlock"), fields.get("gasUsedRatio")];
  const oldest = quoted && asText(quoted).slice(1, -1);
  if (!isQuantity(oldest) || ratios === undefined) {
    return false;
  }
  return BigInt(oldest) + BigInt([...elements(ratios)].length) <= newest;
};

/** Returns the context after a refresh of the heads. Throws geth's error if the block is still above them. */
const refreshed = async (chain: MethodChain, context: Context, newestBlock: BlockParameter): Promise<Context> => {
  const heads = await chain.heads.refresh(context);
  const block = resolveBlock(newestBlock, heads);
  if (block.kind === "aboveHead") {
    const { number } = heads.latest;
    throw new RpcError(CODES.SERVER, `request beyond head block: requested ${block.number}, head ${number}`);
  }
  return context.with({ view: { heads } });
};

/** The error of a node that does not have the newest block yet, which the view has. */
const behind = ({ node }: NodeError, number: bigint): NodeError =>
  new NodeError("otherBranch", node, `header not found: ${node} does not have block ${number} yet`, {
    code: CODES.SERVER,
  });

/** A client that wants confirmations must not see the pending block of a node. */
const newestOf = (asked: BlockParameter, { behind }: Context): BlockParameter =>
  behind !== undefined && "tag" in asked && asked.tag === "pending" ? { tag: "latest" } : asked;

/** The method has no form by hash, and its result has no hash. Above the finalized head, it is cached until the next head. */
export const eth_feeHistory: Method = {
  name,
  retention: "head",
  atPending: "node",
  isSlow: true,
  handle: async ({ chain, call, context }) => {
    const values = parseParams(call.params, params);
    const newestBlock = newestOf(readBlockNumberOrTag(values[1], "newestBlock"), context);
    const isAbove = resolveBlock(newestBlock, context.view.heads).kind === "aboveHead";
    const current = isAbove ? await refreshed(chain, context, newestBlock) : context;
    return retryOnBranchChange(chain, current, async (at) => {
      const newest = resolveBlock(newestBlock, at.view.heads);
      if (!("number" in newest)) {
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
        isComplete: (body: Uint8Array) => values[0] === NO_BLOCKS || !endsBelow(body, newest.number),
      };
      const retention = newest.kind === "final" ? "final" : "head";
      try {
        return await chain.reads.request({ ...request, retention }, at);
      } catch (error) {
        throw isNotYet(error) ? behind(error, newest.number) : error;
      }
    });
  },
};
