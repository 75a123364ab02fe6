import { NodeError, type NodeErrorKind } from "../../core/node.ts";
import { CODES, type RpcError } from "../../jsonrpc/rpcError.ts";

/** Execution reverted: geth, and Parity. The error has the return data, which is the answer. */
const REVERTED = [3, -32015];
/** The client caused these errors. A transaction that waits for its block was sent. */
const CHARGED_CODES: ReadonlySet<number> = new Set([
  ...REVERTED,
  CODES.NOT_CONFIRMED,
  CODES.INVALID_REQUEST,
  CODES.INVALID_PARAMS,
]);
/** The node's answer to this call, whatever its code. */
const CHARGED_KINDS: ReadonlySet<NodeErrorKind> = new Set(["revert", "rejected", "executionFailed", "invalidParams"]);
/** Whether a call that ended with this error costs its price. Any error that may be that of forebay or a node costs nothing. */
export const isCharged = (error: RpcError): boolean => {
  if (error.status >= 400) {
    return false;
  }
  if (error instanceof NodeError) {
    return CHARGED_KINDS.has(error.kind);
  }
  return CHARGED_CODES.has(error.code);
};
