import type { Answer } from "../chain/source.ts";
import { createCall } from "../jsonrpc/call.ts";
import { blockRead, stateBlock } from "./blockReads.ts";
import type { Asked, Method } from "./chain.ts";
import { nonceIn, pendingNonce, raiseNonce } from "./pendingReads.ts";
import { readAddress, required } from "./reader.ts";

const name = "eth_getTransactionCount";

const read = blockRead({
  name,
  params: [required("address", readAddress), stateBlock],
  kind: "state",
  pending: pendingNonce,
  raise: raiseNonce,
});

/** The node's pool may hold what was not sent through here. What it does not answer counts as nothing. */
const onNode = async ({ chain, call, context }: Asked): Promise<Answer | undefined> => {
  const question = { ...createCall(name, [call.params[0], "pending"]), lifetime: "never", subject: "" } as const;
  return chain.reads.request(question, context).catch(() => undefined);
};

/** Contract 4.6: the account's nonce, a quantity. */
export const eth_getTransactionCount: Method = {
  ...read,
  answer: async (asked) => {
    const answer = await read.answer(asked);
    if (answer.pending === undefined || !asked.chain.askNodeNonce) return answer;
    const told = await onNode(asked);
    if (told === undefined || nonceIn(told) <= nonceIn(answer)) return answer;
    return { ...told, pending: answer.pending };
  },
};
