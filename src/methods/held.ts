import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import { overBudget } from "../jsonrpc/rpcError.ts";

/** Counts the result of an execution until its response is sent. Throws RpcError (503) without room. */
export const held = (response: RpcResponse, { memory }: Pick<RequestContext, "memory">): RpcResponse => {
  if (response.body instanceof Uint8Array && memory?.hold(response.body) === false) {
    throw overBudget();
  }
  return response;
};
