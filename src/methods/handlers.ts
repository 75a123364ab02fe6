import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Handler } from "../jsonrpc/dispatch.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { forwardDevelopmentCall, isDevelopmentMethod } from "./developmentMethods.ts";
import { type Chain, forwarded } from "./method.ts";
import { isRefusedMethod } from "./refusedMethods.ts";
import { table } from "./table.ts";

const methodNames: ReadonlySet<string> = new Set(table.map(({ name }) => name));

/** Returns the metric label of a method: its name if it is in the table, `other` if not. */
export const methodLabel = (method: string): string => (methodNames.has(method) ? method : "other");

export interface Handlers {
  lookup(method: string): Handler<RequestContext, RpcResponse> | undefined;
  readonly forward: Handler<RequestContext, RpcResponse>;
}

/** Creates the handlers of one chain's methods. Management methods are rejected unless `allowed` has their namespace. */
export const createHandlers = (chain: Chain, allowed: ReadonlySet<string>): Handlers => {
  const handlers = new Map(
    table.map((method): [string, Handler<RequestContext, RpcResponse>] => [
      method.name,
      (call, context) => method.handle({ chain, call, context }),
    ]),
  );
  return {
    lookup: (method) => handlers.get(method),
    forward: (call, context) => {
      if (isRefusedMethod(call.method, allowed)) {
        throw new RpcError(CODES.METHOD_NOT_FOUND, `the method ${call.method} is not allowed here`);
      }
      const input = { chain, call, context };
      return isDevelopmentMethod(call.method) ? forwardDevelopmentCall(input) : forwarded(input);
    },
  };
};
