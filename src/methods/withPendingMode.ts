import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { PendingMode } from "../core/view.ts";

/** Adds the pending mode to a response. If there is an error instead, records the mode in the client's request. */
export const withPendingMode = async (
  mode: PendingMode,
  response: Promise<RpcResponse>,
  { admission }: Pick<RequestContext, "admission">,
): Promise<RpcResponse> => {
  try {
    return { ...(await response), pending: mode };
  } catch (error) {
    if (admission !== undefined) {
      admission.failedPending ??= mode;
    }
    throw error;
  }
};
