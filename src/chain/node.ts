import type { Call } from "../jsonrpc/call.ts";
import { RpcError, type RpcErrorOptions } from "../jsonrpc/rpcError.ts";
import type { Answer, CallContext, Source } from "./source.ts";

/** What a node's failure means; peers.md 6.3, tested in this order. */
export type NodeErrorKind =
  | "billing"
  | "rateLimited"
  | "tooLarge"
  | "tagUnsupported"
  | "missingData"
  | "otherBranch"
  | "timeout"
  | "revert"
  | "rejected"
  | "unsupportedMethod"
  | "unauthorized"
  | "unreachable"
  | "invalidAnswer"
  | "other";

/** A node's own error, or that it gave none. Reaches the caller with the node's code, message and data. */
export class NodeError extends RpcError {
  override readonly name: string = "NodeError";
  readonly kind: NodeErrorKind;
  readonly node: string;

  constructor(kind: NodeErrorKind, node: string, code: number, message: string, options: RpcErrorOptions = {}) {
    super(code, message, options);
    this.kind = kind;
    this.node = node;
  }
}

/** Who waits for an answer, and how long: all that a node needs of a CallContext. */
export type Reach = Pick<CallContext, "signal" | "deadlineMs" | "traceparent">;

/** One node, for rooms that choose for themselves (spans of logs are pinned to nodes). Rejects with NodeError. */
export interface Node extends Source {
  readonly name: string;
  /** The newest block that this node announced; undefined before its first answer. */
  readonly head: bigint | undefined;
  /** Not banned, not rate limited, breaker not open. */
  readonly available: boolean;
  /** The lowest block whose data the node was not seen to lack. */
  readonly oldest: bigint;
  /** Remember that data at and below this block is pruned there. */
  lacks(number: bigint): void;
  /** Several reads in as few HTTP requests as the node allows; one outcome for each, in their order. Never rejects. */
  batch(calls: readonly Call[], reach: Reach): Promise<(Answer | NodeError)[]>;
}
