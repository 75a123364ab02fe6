import type { RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import type { StateRead, StateReads } from "../state/stateReads.ts";
import type { MainChannel } from "./chainCopy.ts";

/** Reads the known state of the main process. */
export const createRemoteState = (chain: string, main: MainChannel): Pick<StateReads, "request" | "forget"> => {
  const request = async (read: StateRead, ask: () => Awaitable<RpcResponse>): Promise<RpcResponse> => {
    const { method, key, block, context } = read;
    const { bypassCache } = context;
    const { body, asked } = await main.call("readState", { chain, method, key, block, bypassCache });
    if (body !== undefined) {
      return { body, status: { hit: "state" } };
    }
    if (asked === undefined) {
      return ask();
    }
    const enter = (response: RpcResponse | undefined) => main.notify("enterState", { chain, asked, response });
    try {
      const response = await ask();
      enter(response.body instanceof Uint8Array ? response : undefined);
      return response;
    } catch (error) {
      enter(undefined);
      throw error;
    }
  };
  return { request, forget: () => main.notify("forgetState", { chain }) };
};
