import type { RpcResponse } from "../core/rpcSource.ts";
import type { PendingMode } from "../core/view.ts";

/** The pending mode by error. Errors of nodes and of forebay have no field for it. */
const modes = new WeakMap<Error, PendingMode>();

/** Adds the pending mode to a response, or to its error. */
export const withPendingMode = async (mode: PendingMode, response: Promise<RpcResponse>): Promise<RpcResponse> => {
  try {
    return { ...(await response), pending: mode };
  } catch (error) {
    if (error instanceof Error) {
      modes.set(error, mode);
    }
    throw error;
  }
};

/** Returns the pending mode of the first of these errors that has one. */
export const pendingModeOfError = (errors: readonly Error[]): PendingMode | undefined => {
  const withMode = errors.find((error) => modes.has(error));
  return withMode && modes.get(withMode);
};
