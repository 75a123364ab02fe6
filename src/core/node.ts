import type { Call } from "../jsonrpc/call.ts";
import { CODES, RpcError, type RpcErrorOptions } from "../jsonrpc/rpcError.ts";
import type { RequestContext, RpcResponse, RpcSource } from "./rpcSource.ts";

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
  | "unverified"
  | "other";

/** What is checked of a node's answer; a metric label. The last four are computed, and depend on how a chain encodes. */
export type Check =
  | "json"
  | "id"
  | "status"
  | "block"
  | "transaction"
  | "logs"
  | "header"
  | "transactions"
  | "receipts"
  | "depositReceipts";

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

/** A node's answer failed verification, or could not be verified. It is never served. */
export class UnverifiedError extends NodeError {
  override readonly name = "UnverifiedError";
  readonly check: Check;
  /** False where another node must answer first before this one is known to be wrong. */
  readonly isLie: boolean;

  constructor(node: string, check: Check, isLie: boolean, options: Pick<RpcErrorOptions, "cause"> = {}) {
    super("unverified", node, CODES.INTERNAL, `${node}: the upstream response failed verification (${check})`, {
      status: 503,
      retryAfterSeconds: 1,
      ...options,
    });
    this.check = check;
    this.isLie = isLie;
  }
}

/** Who waits for an answer, and how long: all that a node needs of a CallContext. */
export type Reach = Pick<RequestContext, "signal" | "deadlineMs" | "traceparent">;

/** One node, for rooms that choose for themselves (spans of logs are pinned to nodes). Rejects with NodeError. */
export interface Node extends RpcSource {
  readonly name: string;
  /** The newest block that this node announced; undefined before its first answer. */
  readonly head: bigint | undefined;
  /** Not banned, not rate limited, breaker not open. */
  readonly available: boolean;
  /** The lowest block whose data the node was not seen to lack. */
  readonly oldest: bigint;
  /** Its answer is known to be wrong: counted, named in the log, and the node is suspended. Each error once. */
  recordWrongAnswer?(error: UnverifiedError): void;
  /** Remember that data at and below this block is pruned there. */
  recordPruned(number: bigint): void;
  /** Several reads in as few HTTP requests as the node allows; one outcome for each, in their order. Never rejects. */
  batch(calls: readonly Call[], reach: Reach): Promise<(RpcResponse | NodeError)[]>;
}
