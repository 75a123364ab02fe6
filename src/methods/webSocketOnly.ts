import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Method } from "./method.ts";

/** Creates the HTTP form of a WebSocket method: it always throws. */
export const webSocketOnly = (name: string): Method => ({
  name,
  retention: "never",
  atPending: "none",
  handle: async () => {
    throw new RpcError(CODES.METHOD_NOT_FOUND, `${name} needs a WebSocket connection`);
  },
});
