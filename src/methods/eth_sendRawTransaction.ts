import type { RpcResponse } from "../core/rpcSource.ts";
import { createCall } from "../jsonrpc/call.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { readData, required } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";

const name = "eth_sendRawTransaction";

/** A write: sent once, in the client's own text unless that is not the canonical one. The hash that comes back is known to exist from then on, whatever a slower node says. */
export const eth_sendRawTransaction: Method = {
  name,
  kept: "never",
  atPending: "none",
  answer: async (asked: MethodInput): Promise<RpcResponse> => {
    const [raw] = parseParams(asked.call.params, [required("transaction", readData)]);
    const call = raw === asked.call.params[0] ? asked.call : createCall(name, [raw]);
    const answer = await forwarded({ ...asked, call });
    asked.chain.accepted(String(raw));
    return answer;
  },
};
