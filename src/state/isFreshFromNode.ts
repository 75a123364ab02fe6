import type { RpcResponse } from "../core/rpcSource.ts";

/**
 * Whether a node gave this response for this request and a block's hash. A cached response may be older than the last time that
 * all values were dropped. The same applies to a response that another request began.
 */
export const isFreshFromNode = ({ verified, status }: RpcResponse): boolean =>
  verified === true && status.hit === undefined && status.collapsed !== true;
