import type { RpcResponse } from "./rpcSource.ts";

/** The answer is `null`: there is nothing, or the node has not got it. */
export const isNull = ({ body }: Pick<RpcResponse, "body">): boolean =>
  body instanceof Uint8Array &&
  body.byteLength === 4 &&
  body[0] === 0x6e &&
  body[1] === 0x75 &&
  body[2] === 0x6c &&
  body[3] === 0x6c;
