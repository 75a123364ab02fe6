import type { RpcResponse } from "../core/rpcSource.ts";
import type { PendingMode } from "../core/view.ts";

/** An error is the node's own, or ours, and has no place for who answered at `pending`. */
const modes = new WeakMap<Error, PendingMode>();

/** The answer at `pending`, or its error, with who answered. */
export const withPendingMode = async (mode: PendingMode, answer: Promise<RpcResponse>): Promise<RpcResponse> => {
  try {
    return { ...(await answer), pending: mode };
  } catch (error) {
    if (error instanceof Error) modes.set(error, mode);
    throw error;
  }
};

/** Who answered with one of these errors, where `pending` was asked. */
export const pendingModeOfError = (errors: readonly Error[]): PendingMode | undefined => {
  const told = errors.find((error) => modes.has(error));
  return told && modes.get(told);
};
