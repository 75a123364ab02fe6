import type { RpcResponse } from "./rpcSource.ts";

/** Reports whether a response's result is `null`: the object does not exist, or the node does not have it. */
export const isNull = ({ body }: Pick<RpcResponse, "body">): boolean =>
  body instanceof Uint8Array &&
  body.byteLength === 4 &&
  body[0] === 0x6e &&
  body[1] === 0x75 &&
  body[2] === 0x6c &&
  body[3] === 0x6c;
