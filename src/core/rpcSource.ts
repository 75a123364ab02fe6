import { parseJson } from "../json/jsonBytes.ts";
import type { Awaitable, Call, Reply } from "../jsonrpc/call.ts";
import type { Context } from "./context.ts";
import type { Grade } from "./grade.ts";
import type { BlockId } from "./heads.ts";
import type { RequestBlock, RetentionClass } from "./retention.ts";
import type { PendingMode } from "./view.ts";

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
  /** A raw transaction that all usable nodes get, each once, but for private ones. */
  readonly sendToAll?: boolean;
  /** Nodes of these origins are asked only if no other node can answer, those of the first origin first. */
  readonly avoidedOrigins?: readonly string[];
  /** Nodes of these origins are not asked, because they have stated the value that another origin confirms. */
  readonly excludedOrigins?: readonly string[];
  /** Nobody has sent it before, as far as is remembered. Most such calls come once, so that memory keeps no response of them. */
  readonly isFirst?: boolean;
  /** The expired entry of the cache. Another origin must confirm it. */
  readonly earlier?: EarlierValue;
}

/** A value that a node stated earlier. */
export interface EarlierValue {
  readonly body: Uint8Array;
  readonly block?: BlockId;
  readonly source: { readonly node: string; readonly origin: string };
}

/** Parameters of Cache-Status (RFC 9211). */
export interface CacheStatus {
  /** The source of a response that no node was asked for. */
  readonly hit?: "memory" | "disk" | "redis" | "state" | "view" | "local";
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
   * Whether a second origin has stated the same. False: one node alone has, although two are required. Undefined: none is
   * required, or a hash verifies the response.
   */
  readonly isAgreed?: boolean | undefined;
  /** Types that forebay does not know leave a part of it unchecked, and another node may show more. */
  readonly isPartial?: boolean;
  /** For a list whose items may be errors: whether each is a result. Undefined: nothing has read the items. */
  readonly isWhole?: boolean | undefined;
  /** The source of a response at `pending`. */
  readonly pending?: PendingMode;
  readonly grade?: Grade | undefined;
}

/** Answers requests. Nodes, caches and everything between them implement this interface; a feature wraps another source. */
export interface RpcSource {
  /** Returns a response that is known, such as a cached one, without a promise. */
  request(request: RpcRequest, context: Context): Awaitable<RpcResponse>;
}

/** A source that sends each request to a node. */
export interface NodeSource extends RpcSource {
  request(request: RpcRequest, context: Context): Promise<RpcResponse>;
}

/** Returns the parsed result of a response. Undefined for a stream. */
export const parsedResult = ({ body }: Pick<RpcResponse, "body">): unknown =>
  body instanceof Uint8Array ? parseJson(body) : undefined;

/** Reports whether a response's result is `null`: the object does not exist, or the node does not have it. */
export const isNull = ({ body }: Pick<RpcResponse, "body">): boolean =>
  body instanceof Uint8Array &&
  body.byteLength === 4 &&
  body[0] === 0x6e &&
  body[1] === 0x75 &&
  body[2] === 0x6c &&
  body[3] === 0x6c;

/**
 * Whether a node gave this response for this request and a block's hash. A cached response may be older than the last time that
 * all values were dropped. The same applies to a response that another request began.
 */
export const isFreshFromNode = ({ verified, status }: RpcResponse): boolean =>
  verified === true && status.hit === undefined && status.collapsed !== true;
