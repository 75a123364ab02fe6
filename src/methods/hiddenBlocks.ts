import type { Context } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";

/** The response of what is in a block that the client does not see yet, because it wants confirmations. */
export const HIDDEN: RpcResponse = { body: Buffer.from("null"), status: { hit: "view" } };

/** Whether the hash is that of a block which the client does not see yet. */
export const isHidden = ({ behind, view }: Pick<Context, "behind" | "view">, hash: string): boolean => {
  if (behind === undefined) {
    return false;
  }
  const { at, latest } = behind.actual.heads;
  for (let { number } = latest; number > view.heads.latest.number; number--) {
    if (at(number)?.hash === hash) {
      return true;
    }
  }
  return false;
};
