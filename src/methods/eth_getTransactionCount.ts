import type { RpcResponse } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { blockRead, stateBlock } from "./blockRead.ts";
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

/** The node's pool may hold what was not sent through here. What it does not answer counts as nothing. */
const onNode = async ({ chain, context }: MethodInput, address: string): Promise<RpcResponse | undefined> => {
  const question = { ...createCall(name, [address, "pending"]), retention: "never", canonicalParams: "" } as const;
  return chain.reads.request(question, context).catch(() => undefined);
};

/** Contract 4.6: the account's nonce, a quantity; at `pending` raised over what nodes accepted through forebay. */
export const eth_getTransactionCount: Method = {
  ...read,
  answer: async (asked) => {
    const answer = await read.answer(asked);
    const { pending } = answer;
    if (pending === undefined) return answer;
    const { chain } = asked;
    const address = readAddress(asked.call.params[0], "address");
    const told = chain.askNodeNonce ? await onNode(asked, address) : undefined;
    const best = told !== undefined && nonceIn(told) > nonceIn(answer) ? told : answer;
    const nonce = nonceIn(best);
    const raised = await chain.advanceNonce(`0x${address.slice(2)}`, nonce);
    return { ...(raised === nonce ? best : viewResponse(formatQuantity(raised))), pending };
  },
};
