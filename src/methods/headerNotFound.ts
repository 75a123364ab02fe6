import { NodeError } from "../core/node.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { isMissingBlock } from "../nodes/errorKind.ts";

/** What every state read of an unknown block is answered with (architecture.md, table of answers). */
export const headerNotFound = (): RpcError => new RpcError(CODES.SERVER, "header not found");

/** Rethrows; each node has its own words for a block that it does not know. */
export const throwUnknownBlock = (error: unknown): never => {
  const isUnknown = error instanceof NodeError && error.kind === "missingData" && isMissingBlock(error.message);
  throw isUnknown ? headerNotFound() : error;
};
