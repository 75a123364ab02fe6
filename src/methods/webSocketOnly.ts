import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Method } from "./method.ts";

/** Subscriptions need a connection that stays. */
export const webSocketOnly = (name: string): Method => ({
  name,
  kept: "never",
  atPending: "none",
  answer: async () => {
    throw new RpcError(CODES.METHOD_NOT_FOUND, `${name} needs a WebSocket connection`);
  },
});
