import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Method } from "./chain.ts";

/** Creates the HTTP form of a WebSocket method: it always throws. */
export const overHttp = (name: string): Method => ({
  name,
  kept: "never",
  atPending: "none",
  answer: async () => {
    throw new RpcError(CODES.METHOD_NOT_FOUND, `${name} needs a WebSocket connection`);
  },
});
