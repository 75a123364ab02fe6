import type { Awaitable } from "../jsonrpc/awaitable.ts";
import type { Call, Reply } from "../jsonrpc/call.ts";
import type { ResultMemory } from "../jsonrpc/resultMemory.ts";
import type { CallUsage } from "./callUsage.ts";
import type { BlockId } from "./heads.ts";
import type { LazySignal } from "./lazySignal.ts";
import type { RequestBlock, RetentionClass } from "./retention.ts";
import type { Span, TraceHeaders } from "./trace.ts";
import type { PendingMode, View } from "./view.ts";

/** A call with resolved tags and defaults, and the facts that nodes and caches need. */
export interface RpcRequest extends Call {
  readonly retention: RetentionClass;
  /** Canonical JSON text of the parameters without the block. Two requests have equal texts only if they mean the same. */
  readonly canonicalParams: string;
  /** The requested block. A node must have it. `hash` is present if the ring has the block. */
  readonly block?: RequestBlock;
  /** The same request by block hash (EIP-1898, or a ByHash method). Nodes that support it get this form. */
  readonly byHash?: Call;
  /** The response field with the block's hash: `hash`, `blockHash`, or `blockHash` of the first element. */
  readonly blockField?: "hash" | "blockHash" | "firstBlockHash";
  /** A `null` response means that a block at or below the node's head is missing. It is retried. */
  readonly nullIsError?: boolean;
  /** Whether a response has all data of the block. If not, it is retried as if the block was missing. */
  readonly isComplete?: (body: Uint8Array) => boolean;
  /** The requested transaction is in a known block. A node that has the view's head has it too. */
  readonly isInKnownBlock?: boolean;
  /** The name of the only node that can answer: it has the requested filter, or it gave the other part of the response. */
  readonly onlyNode?: string;
  /** Nodes of these origins are asked only if no other node can answer, those of the first origin first. */
  readonly avoidedOrigins?: readonly string[];
  /** Nodes of these origins are not asked, because they have stated the value that another origin confirms. */
  readonly excludedOrigins?: readonly string[];
}

/** Parameters of Cache-Status (RFC 9211). */
export interface CacheStatus {
  /** The source of a response that no node was asked for. */
  readonly hit?: "memory" | "redis" | "state" | "view" | "local";
  /** The reason why the request was sent to a node. */
  readonly fwd?: "miss" | "bypass" | "method" | "partial" | "request";
  readonly stored?: boolean;
  readonly collapsed?: boolean;
  readonly detail?: string;
}

export interface RpcResponse extends Reply {
  readonly status: CacheStatus;
  /** The name of the node that answered, never its URL. */
  readonly node?: string;
  /** The block of the response, if it is known. */
  readonly block?: BlockId;
  /** The request was sent by hash, or the response contains the hash of the requested block. It may be cached as `recent`. */
  readonly verified?: boolean;
  /**
   * Whether a second origin has stated the same. False: it is the word of one node, although two are required. Undefined: none is
   * required, or a hash verifies the response.
   */
  readonly isConfirmed?: boolean | undefined;
  /** The source of a response at `pending`. */
  readonly pending?: PendingMode;
}

/** A client's request. If its first call to a node is admitted, no further call of it is refused for the node's load. */
export interface RequestAdmission {
  isAdmitted: boolean;
  /** The calls to nodes by which its executions read state, of all items of a batch. */
  stateReads: number;
  /** The source of the first read at `pending` that failed. Errors have no field for it. */
  failedPending?: PendingMode | undefined;
}

export interface RequestContext {
  readonly view: View;
  /**
   * Aborts when the client disconnects. It may be a getter, because a cache hit needs no signal.
   * Copy a context by `deriveContext`: a spread loses the getter.
   */
  readonly signal: AbortSignal;
  /**
   * The same as `signal`, without an AbortController until somebody needs one: see `onAbort` in core/lazySignal.ts.
   * Always a getter of a class, so that a spread that replaces the signal loses it.
   */
  readonly lazySignal?: LazySignal | undefined;
  /** The client waits until this time, in milliseconds of `performance.now()`. */
  readonly deadlineMs: number;
  /** Identifies the client, for fair scheduling and limits. */
  readonly clientId: string;
  /** The client's connection, for fair scheduling. Undefined for requests of forebay itself. */
  readonly connection?: object | undefined;
  /** The client's request that the call belongs to. Undefined for requests of forebay itself. */
  readonly admission?: RequestAdmission | undefined;
  /** Counts the bytes that the request holds until its response is written. Undefined for requests of forebay itself. */
  readonly memory?: ResultMemory | undefined;
  /** Do not read the cache. The response may still be cached. */
  readonly bypassCache: boolean;
  /** The client sent `Cache-Control: no-cache` (RFC 9111, section 5.2.1.4): state values are read from a node. */
  readonly noCache?: boolean;
  /** The id of the HTTP request, for logs. */
  readonly requestId?: string | undefined;
  /** Forwarded to nodes. */
  readonly traceHeaders?: TraceHeaders | undefined;
  /** The span of the call. Undefined unless tracing is on and the call is sampled. */
  readonly span?: Span | undefined;
  /** Throws or rejects with RpcError if the client may not call this method, or not now. */
  readonly authorize?: ((method: string) => Promise<void> | undefined) | undefined;
  /** Counts this client's calls. Read when a call ends, so that derived contexts do not have it. */
  readonly usage?: CallUsage | undefined;
  /** Counts work of this request against the client's rate limits. Undefined if the client has no limit. */
  readonly charge?: ((calls: number, reason: "stateReads" | "invalid") => void) | undefined;
}

/** The client's request that an execution reads state for. */
export type StateReadContext = Pick<
  RequestContext,
  "clientId" | "connection" | "admission" | "charge" | "noCache" | "bypassCache"
>;

/** Answers requests. Nodes, caches and everything between them implement this interface; a feature wraps another source. */
export interface RpcSource {
  /** Returns a response that is known, such as a cached one, without a promise. */
  request(request: RpcRequest, context: RequestContext): Awaitable<RpcResponse>;
}

/** A source that sends each request to a node. */
export interface NodeSource extends RpcSource {
  request(request: RpcRequest, context: RequestContext): Promise<RpcResponse>;
}
