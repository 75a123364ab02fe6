import type { RetentionClass } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { createCall } from "../jsonrpc/call.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Method } from "./method.ts";
import type { ParamSpec } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";

export interface PlainRead {
  readonly name: string;
  readonly params: readonly ParamSpec[];
  readonly retention: Extract<RetentionClass, "constant" | "byHash" | "head" | "byTransaction" | "never">;
  readonly blockField?: RpcRequest["blockField"];
  /** `null` is retried on other nodes. */
  readonly nullIsError?: true;
  /** See `Method`. */
  readonly isSlow?: true;
}

/** Creates a method without a block number. Its retention class depends only on its params, or on the head. */
export const plainRead = ({ name, params, retention, blockField, nullIsError, isSlow }: PlainRead): Method => ({
  name,
  retention,
  atPending: "none",
  ...(isSlow && { isSlow }),
  handle: ({ chain, call, context }) => {
    const values = parseParams(call.params, params);
    const canonicalParams = JSON.stringify([name, values]);
    const request = {
      ...createCall(name, values),
      retention,
      canonicalParams,
      ...(blockField && { blockField }),
      ...(nullIsError && { nullIsError }),
    };
    return retryOnBranchChange(chain, context, (at) => chain.reads.request(request, at));
  },
});
