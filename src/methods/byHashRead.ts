import type { PendingView } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Method } from "./method.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";
import { viewResponse } from "./pendingReads.ts";
import { type PlainRead, plainRead } from "./plainRead.ts";

export interface ByHashRead extends PlainRead {
  /** Returns the value from the pending blocks. If it is undefined, the request goes to the nodes. */
  readonly inView: (pending: PendingView, hash: Hash, values: readonly CanonicalJson[]) => Uint8Array | undefined;
}

/** Creates a method that reads by the hash of a block or transaction. The view is tried first, because the hash may be pre-confirmed. */
export const byHashRead = (spec: ByHashRead, sealed: Method = plainRead(spec)): Method => {
  return {
    name: spec.name,
    retention: spec.retention,
    atPending: "view",
    ...(spec.isSlow && { isSlow: true }),
    handle: (input) => {
      const { pending } = input.context.view;
      if (pending === undefined || pending.blocksFrom !== "view") {
        return sealed.handle(input);
      }
      const values = parseParams(input.call.params, spec.params);
      const body = spec.inView(pending, `0x${String(values[0]).slice(2)}`, values);
      return body === undefined ? sealed.handle(input) : { ...viewResponse(body), pending: pending.mode };
    },
  };
};

export const transactionInView: ByHashRead["inView"] = (pending, hash) => {
  const location = pending.find(hash);
  return location?.block.transaction(location.index);
};

export const receiptInView: ByHashRead["inView"] = (pending, hash) => {
  const location = pending.find(hash);
  return location?.block.receipt(location.index);
};

export const blockInView: ByHashRead["inView"] = (pending, hash, values) =>
  pending.byHash(hash)?.body(values[1] === true);
