import { NodeError } from "../core/node.ts";
import { isMissingBlock } from "../core/retryCause.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";

/** The error of every state read at an unknown block (docs/answers.md, Blocks and pending). */
export const headerNotFound = (): RpcError => new RpcError(CODES.SERVER, "header not found");

/** Throws one error for an unknown block, because each node has its own message. Other errors are rethrown. */
export const throwUnknownBlock = (error: unknown): never => {
  const isUnknown = error instanceof NodeError && error.kind === "missingData" && isMissingBlock(error.message);
  throw isUnknown ? headerNotFound() : error;
};
