import type { RpcResponse } from "../core/rpcSource.ts";
import { createCall } from "../jsonrpc/call.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { parseParams, readData, required } from "./paramSpec.ts";

const name = "eth_sendRawTransaction";

/**
 * Sends a transaction once. The client's text is sent unchanged if it is canonical.
 * From then on, the returned hash is expected to exist, even if a slower node does not know it yet.
 */
export const eth_sendRawTransaction: Method = {
  name,
  retention: "never",
  atPending: "none",
  handle: async (input: MethodInput): Promise<RpcResponse> => {
    const [raw] = parseParams(input.call.params, [required("transaction", readData)]);
    const call = raw === input.call.params[0] ? input.call : createCall(name, [raw]);
    const response = await forwarded({ ...input, call });
    input.chain.recordSubmitted(String(raw));
    return response;
  },
};
