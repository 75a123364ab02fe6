import type { Call } from "../jsonrpc/call.ts";
import { CODES, RpcError, type RpcErrorOptions } from "../jsonrpc/rpcError.ts";
import type { CallScope } from "./context.ts";
import type { NodeSource, RpcResponse } from "./rpcSource.ts";

/** The meaning of a node's error. The rules are in docs/reference/providers.md, Order of classification. */
export type NodeErrorKind =
  | "billing"
  | "rateLimited"
  | "overloaded"
  | "tooLarge"
  | "tagUnsupported"
  | "missingData"
  | "otherBranch"
  | "timeout"
  | "revert"
  | "rejected"
  | "executionFailed"
  | "invalidParams"
  | "cancelled"
  | "unsupportedMethod"
  | "unauthorized"
  | "unreachable"
  | "invalidAnswer"
  | "unverified"
  | "other";

/** Errors that say that the node or the connection to it is not well. The others say what a request is, or what a node has. */
export const NODE_FAULTS = [
  "billing",
  "rateLimited",
  "overloaded",
  "timeout",
  "unauthorized",
  "unreachable",
  "invalidAnswer",
  "unverified",
  "other",
] as const satisfies readonly NodeErrorKind[];

const FAULT_KINDS: ReadonlySet<unknown> = new Set(NODE_FAULTS);

export const isNodeFault = (kind: unknown): kind is (typeof NODE_FAULTS)[number] => FAULT_KINDS.has(kind);

const CLIENT_FAULTS: ReadonlySet<NodeErrorKind> = new Set(["revert", "rejected", "executionFailed", "invalidParams"]);

/** Whether the client caused the error, so that every node would return it. */
export const isClientFault = (kind: NodeErrorKind): boolean => CLIENT_FAULTS.has(kind);

/** A property of a node's response that is verified; a metric label. The last six depend on the chain's encoding. */
export type Check =
  | "json"
  | "id"
  | "status"
  | "form"
  | "block"
  | "transaction"
  | "logs"
  | "state"
  | "header"
  | "transactions"
  | "receipts"
  | "depositReceipts"
  | "proof"
  | "accessList";

/** The HTTP reply that an error was in, for decisions and log lines. It contains no credential. */
export interface NodeReply {
  readonly status: number;
  /** The text of the error, or the beginning of a body that is not JSON. */
  readonly text: string;
  readonly retryAfterSeconds?: number | undefined;
}

/** What of a request for logs was too large: its blocks, its addresses or topics, or the response. */
export type LogsRefusal = "width" | "lists" | "size";

export interface NodeErrorOptions extends RpcErrorOptions {
  /** JSON-RPC error code; default: -32603. */
  readonly code?: number;
  readonly reply?: NodeReply;
  readonly refusal?: LogsRefusal | undefined;
}

/** An error that a node returned, or the lack of a response. The client receives the node's code, message and data. */
export class NodeError extends RpcError {
  override readonly name: string = "NodeError";
  readonly kind: NodeErrorKind;
  readonly node: string;
  /** Undefined if no reply arrived. */
  readonly reply: NodeReply | undefined;
  /** Why a request for logs must be split. Undefined: that does not help. */
  readonly refusal: LogsRefusal | undefined;

  constructor(kind: NodeErrorKind, node: string, message: string, options: NodeErrorOptions = {}) {
    super(options.code ?? CODES.INTERNAL, message, options);
    this.kind = kind;
    this.node = node;
    this.reply = options.reply;
    this.refusal = options.refusal ?? (kind === "tooLarge" ? "size" : undefined);
  }
}

/** A node's response failed verification, or could not be verified. The response is never served. */
export class UnverifiedError extends NodeError {
  override readonly name = "UnverifiedError";
  readonly check: Check;
  /** True if the response is certainly wrong. False if only another node's response can show that. */
  readonly isCertain: boolean;

  constructor(node: string, check: Check, isCertain: boolean, options: Pick<RpcErrorOptions, "cause"> = {}) {
    super("unverified", node, `the upstream response failed verification (${check})`, {
      status: 503,
      retryAfterSeconds: 1,
      ...options,
    });
    this.check = check;
    this.isCertain = isCertain;
  }
}

/** The text of the error (503) while no node can be reached. */
export const NO_NODE_REACHED = "no node can be reached";

/** Returns the error for a client after this one of a node. It says if no node can be reached. */
export const unreachedOr = (error: unknown, nodes: readonly Pick<Node, "use">[]): unknown => {
  const isUnreached = error instanceof NodeError && error.kind === "unreachable" && error.reply === undefined;
  return isUnreached && !nodes.some(({ use }) => use === "yes")
    ? new NodeError(error.kind, error.node, NO_NODE_REACHED, { status: 503, retryAfterSeconds: 1 })
    : error;
};

/** One node, for callers that select nodes themselves (a log range stays on one node). Rejects with NodeError. */
export interface Node extends NodeSource {
  readonly name: string;
  /** The operator of the node. Nodes of one origin are no evidence for each other. */
  readonly origin: string;
  /** The tier, 0 first. A later tier gets reads only if no node of an earlier one can take them. */
  readonly priority: number;
  /** Limit of the ranges of eth_getLogs that it gets at a time. */
  readonly maxLogRanges: number;
  /** The number of the newest block that the node reported; undefined before its first response. */
  readonly head: bigint | undefined;
  /** The order in which nodes are tried: `spare` answers, `no` is not tried. */
  readonly use: "yes" | "spare" | "lastResort" | "no";
  /** The node is in use, or it is spare and no other one is in use. */
  readonly available: boolean;
  /** Whether the operator lets the node have this method. Heads are read in any case. */
  serves(method: string): boolean;
  /** Whether the node is to be asked for this method: it has not refused it lately. */
  accepts(method: string): boolean;
  /** The lowest block whose logs the node may have: neither a response nor a statement of the node says that they are pruned. */
  readonly oldest: bigint;
  /** Counts and logs a response that is known to be wrong, and suspends the node. Has an effect once per error. */
  recordWrongAnswer?(error: UnverifiedError): void;
  /** Records that the node has pruned what the method reads, of this block and of all blocks below it. */
  recordPruned(method: string, number: bigint): void;
  /** Sends several calls in as few HTTP requests as the node allows. Returns one outcome per call, in order. Never rejects. */
  batch(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]>;
}
