import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Method } from "./chain.ts";

/** Subscriptions need a connection that stays. */
export const overHttp = (name: string): Method => ({
  name,
  kept: "never",
  atPending: "none",
  answer: async () => {
    throw new RpcError(CODES.METHOD_NOT_FOUND, `${name} needs a WebSocket connection`);
  },
});
