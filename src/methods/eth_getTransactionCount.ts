import type { RpcResponse } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { stateBlock } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import type { Method, MethodInput } from "./method.ts";
import { readAddress, required } from "./paramSpec.ts";
import { nonceIn, pendingNonce, viewResponse } from "./pendingReads.ts";

const name = "eth_getTransactionCount";

const read = blockRead({
  name,
  params: [required("address", readAddress), stateBlock],
  kind: "state",
  pending: pendingNonce,
});

/** The node's pool may have transactions that were not sent through forebay. If the node fails, its nonce counts as zero. */
const onNode = async ({ chain, context }: MethodInput, address: string): Promise<RpcResponse | undefined> => {
  const request = { ...createCall(name, [address, "pending"]), retention: "never", canonicalParams: "" } as const;
  return Promise.try(() => chain.reads.request(request, context)).catch(() => undefined);
};

/**
 * Returns the account's nonce, a quantity (docs/service.md, eth_getTransactionCount).
 * At `pending`, it is raised above the transactions that nodes accepted through forebay.
 */
export const eth_getTransactionCount: Method = {
  ...read,
  answer: async (input) => {
    const answer = await read.answer(input);
    const { pending } = answer;
    if (pending === undefined) {
      return answer;
    }
    const { chain } = input;
    const address = readAddress(input.call.params[0], "address");
    const told = chain.askNodeNonce ? await onNode(input, address) : undefined;
    const best = told !== undefined && nonceIn(told) > nonceIn(answer) ? told : answer;
    const nonce = nonceIn(best);
    const raised = await chain.advanceNonce(`0x${address.slice(2)}`, nonce);
    return { ...(raised === nonce ? best : viewResponse(formatQuantity(raised))), pending };
  },
};
