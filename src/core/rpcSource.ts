import type { Call, Reply } from "../jsonrpc/call.ts";
import type { BlockId } from "./heads.ts";
import type { RequestBlock, RetentionClass } from "./retention.ts";
import type { PendingMode, View } from "./view.ts";

export type { RetentionClass } from "./retention.ts";

/** A call whose tags and defaults are resolved: what nodes are asked, and what may be kept of the answer. */
export interface RpcRequest extends Call {
  readonly retention: RetentionClass;
  /** Canonical JSON text of all that is asked but the block: equal questions have equal subjects, different ones never. */
  readonly canonicalParams: string;
  /** The block asked for. A node must have it; `hash` is set where the ring knows it. */
  readonly block?: RequestBlock;
  /** The same question put by the block's hash (EIP-1898, or a ByHash method): sent instead, to nodes that can. */
  readonly byHash?: Call;
  /** Where the answer itself tells its block: in `hash`, in `blockHash`, or in `blockHash` of its first element. */
  readonly blockField?: "hash" | "blockHash" | "firstBlockHash";
  /** A `null` would say that a block at or below the node's head is missing: it is asked again (architecture.md, upstream). */
  readonly nullIsError?: boolean;
  /** The transaction asked for is in a block that was seen here: a node that has the view's head has it. */
  readonly isInKnownBlock?: boolean;
  /** Never shared, retried or hedged: a write, or a method outside the table. */
  readonly write?: boolean;
  /** The filter that is asked lives in the node of this name: no other node can answer. */
  readonly filterOwner?: string;
}

/** Parameters of Cache-Status (RFC 9211). */
export interface CacheStatus {
  /** Answered without a node, and from where. */
  readonly hit?: "memory" | "redis" | "view" | "local";
  /** Why a node was asked. */
  readonly fwd?: "miss" | "bypass" | "method" | "partial" | "request";
  readonly stored?: boolean;
  readonly collapsed?: boolean;
  readonly detail?: string;
}

export interface RpcResponse extends Reply {
  readonly status: CacheStatus;
  /** The node that answered: its name, never its URL. */
  readonly node?: string;
  /** The block that the answer is of, where that is known. */
  readonly block?: BlockId;
  /** The node was asked by hash, or the answer itself holds the hash of `question.block`: it may be kept as recent. */
  readonly verified?: boolean;
  /** Where `pending` was asked: who answered. */
  readonly pending?: PendingMode;
}

export interface RequestContext {
  readonly view: View;
  /** Aborted when the caller has left. */
  readonly signal: AbortSignal;
  /** `performance.now()` milliseconds after which nobody waits for the answer. */
  readonly deadlineMs: number;
  /** Who asks, for fairness: one string a client. */
  readonly clientId: string;
  /** Read past the cache (the answer may still be kept). */
  readonly bypassCache: boolean;
  /** The HTTP request that this is part of, for logs. */
  readonly requestId?: string | undefined;
  /** Passed on to nodes (W3C Trace Context). */
  readonly traceparent?: string | undefined;
  /** Throws or rejects with RpcError where the caller may not call this method, or not now. */
  readonly authorize?: ((method: string) => Promise<void> | undefined) | undefined;
}

/** The one interface that carries everything that answers a question. Features wrap it. */
export interface RpcSource {
  request(question: RpcRequest, context: RequestContext): Promise<RpcResponse>;
}
