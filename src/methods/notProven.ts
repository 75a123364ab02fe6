import type { RpcResponse } from "../core/rpcSource.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";

/** Why an answer is not proven although it must be. */
export type NotProvenReason = "noProof" | "notAgreed" | "method" | "pending";

const TEXTS: Readonly<Record<NotProvenReason, string>> = {
  noProof: "no proof of this answer was found",
  notAgreed: "no majority of several origins has the block",
  method: "answers of this method cannot be proven",
  pending: "no header binds a pending block",
};

/** The error of a call whose answer must be proven, and is not. No node is to blame for it. */
export class NotProvenError extends RpcError {
  readonly reason: NotProvenReason;

  /** `proof`: that of the answer that was found. */
  constructor(reason: NotProvenReason, proof?: RpcResponse["proof"]) {
    const data = { required: "proven", label: proof ?? "stated", reason };
    super(CODES.SERVER, `not proven: ${TEXTS[reason]}`, { data });
    this.reason = reason;
  }
}
