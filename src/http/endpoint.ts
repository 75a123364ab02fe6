import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AuthenticatedRequest } from "../access/accessControl.ts";
import { LazySignal } from "../core/lazySignal.ts";
import type { TraceHeaders } from "../core/trace.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import type { Chunk } from "../jsonrpc/formatResponse.ts";
import type { ResultMemory } from "../jsonrpc/resultMemory.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { type MemoryBudget, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import type { PassedMessages } from "./passedMessages.ts";
import type { BodyMemory } from "./readBody.ts";
import { RequestMemory } from "./requestMemory.ts";

/** The HTTP request of a call, without its body. */
export interface EndpointRequest {
  readonly requestId: string;
  /** Identifies the client for fairness and limits. */
  readonly clientId: string;
  /** The identity of the client's connection, for fairness. */
  readonly connection: object;
  /** Throws RpcError for a method that the client may not call. Undefined if it may call all methods. */
  readonly authorize?: AuthenticatedRequest["authorize"];
  /** Counts work of this request against the client's limits. Undefined if the client has no limit. */
  readonly charge?: AuthenticatedRequest["charge"];
  /** Counts the client's calls and bytes. Undefined without a key. */
  readonly usage?: AuthenticatedRequest["usage"];
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the client disconnects. Created on first use, because a cache hit never needs it. */
  readonly signal: AbortSignal;
  /** Counts the results that the request holds. Undefined: they are not counted. */
  readonly memory?: ResultMemory | undefined;
  /** The same as `signal`: see `RequestContext`. */
  readonly lazySignal?: LazySignal | undefined;
}

export interface EndpointResponse {
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly chunks: readonly Chunk[];
  /** Value of the Cache-Status header (see formatCacheStatus). */
  readonly cacheStatus: string;
  /** Value of x-forebay-pending, for calls at `pending`. */
  readonly pending?: string | undefined;
  /** Value of x-forebay-head: whether a majority of several origins has the served head. Undefined before the first head. */
  readonly head?: "agreed" | "linked" | undefined;
  /** The errors in the response. Complete when all chunks are read. */
  readonly errors?: readonly RpcError[] | undefined;
  /** Names and values of further headers, in one flat list. */
  readonly headers?: readonly string[] | undefined;
}

/** Passes requests through that are not JSON-RPC. */
export interface PassThrough {
  /** `body` is undefined if it is still to be read. */
  web(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void;
  /** `messages` checks what the client sends. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, messages: PassedMessages): void;
  close(): void;
}

/** The JSON-RPC service of one path. */
export interface Endpoint {
  /** The name of the chain. */
  readonly chain?: string | undefined;
  /** Handles a body. Throws or rejects with RpcError if the whole request is invalid. */
  handle(body: Uint8Array, request: EndpointRequest): Awaitable<EndpointResponse>;
  /** Serves WebSockets. Without this method, they are passed through. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, admitted: AuthenticatedRequest): void;
  readonly passthrough?: PassThrough | undefined;
}

/** Accepted ids of clients: characters that are safe in a log and in a header. */
const REQUEST_ID = /^[\w.:-]{1,128}$/;

/** W3C Trace Context, section 3.2: https://www.w3.org/TR/trace-context/#traceparent-header */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A longer value is not forwarded. W3C Baggage, section 3.3.2, requires this length at least. */
const MAX_TRACE_BYTES = 8_192;

const shortText = (header: string | string[] | undefined): string | undefined =>
  typeof header === "string" && header !== "" && header.length <= MAX_TRACE_BYTES ? header : undefined;

/** Reads the headers of a trace. Undefined if traceparent is missing or invalid: the others mean nothing without it. */
export const readTraceHeaders = (headers: IncomingHttpHeaders): TraceHeaders | undefined => {
  const { traceparent } = headers;
  if (typeof traceparent !== "string" || !TRACEPARENT.test(traceparent)) {
    return undefined;
  }
  const tracestate = shortText(headers.tracestate);
  const baggage = shortText(headers.baggage);
  return {
    traceparent,
    ...(tracestate !== undefined && { tracestate }),
    ...(baggage !== undefined && { baggage }),
  };
};

/** Creates the source of request ids: the client's x-request-id, else an id that is unique among replicas. */
export const createRequestIds = (): ((headers: IncomingHttpHeaders) => string) => {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  return ({ "x-request-id": header }) => {
    if (typeof header === "string" && REQUEST_ID.test(header)) {
      return header;
    }
    count++;
    return `${prefix}-${count.toString(36)}`;
  };
};

/** A class because of its getter: see LazyCall in jsonrpc/envelope.ts. */
export class HttpEndpointRequest implements EndpointRequest, ResultMemory, BodyMemory {
  readonly requestId: string;
  readonly clientId: string;
  readonly connection: object;
  readonly authorize: AuthenticatedRequest["authorize"];
  readonly charge: AuthenticatedRequest["charge"];
  readonly usage: AuthenticatedRequest["usage"];
  readonly headers: IncomingHttpHeaders;
  readonly #departure = new LazySignal();
  readonly #budget: MemoryBudget | undefined;
  #held: RequestMemory | undefined;

  constructor(
    request: IncomingMessage,
    requestId: string,
    { clientId, authorize, charge, usage }: Pick<AuthenticatedRequest, "clientId" | "authorize" | "charge" | "usage">,
    budget: MemoryBudget | undefined,
  ) {
    this.#budget = budget;
    this.requestId = requestId;
    this.clientId = clientId;
    this.connection = request.socket;
    this.authorize = authorize;
    this.charge = charge;
    this.usage = usage;
    this.headers = request.headers;
  }

  get signal(): AbortSignal {
    return this.#departure.signal;
  }

  get lazySignal(): LazySignal {
    return this.#departure;
  }

  /** Itself, so that a request that holds little needs no other object. */
  get memory(): ResultMemory {
    return this;
  }

  announceBody(bytes: number): boolean {
    return bytes <= UNCOUNTED_BYTES || (this.#memory?.announceBody(bytes) ?? true);
  }

  holdBody(bytes: number): boolean {
    return this.#memory?.holdBody(bytes) ?? true;
  }

  holdCalls(calls: number, running: number): boolean {
    return this.#memory?.holdCalls(calls, running) ?? true;
  }

  hold(result: Uint8Array): boolean {
    return this.#memory?.hold(result) ?? true;
  }

  drop(result: Uint8Array): void {
    this.#held?.drop(result);
  }

  holdResponse(bytes: number): boolean {
    return this.#memory?.holdResponse(bytes) ?? true;
  }

  /** Counts a body that waits for its calls, unless it was counted while it was read. It cannot be refused any more. */
  holdParsedBody(bytes: number): void {
    if (this.#held?.hasBody !== true) {
      this.holdBody(bytes);
    }
  }

  /** The request holds neither body nor results any more. */
  releaseMemory(): void {
    this.#held?.release();
  }

  get #memory(): RequestMemory | undefined {
    this.#held ??= this.#budget && new RequestMemory(this.#budget, this.clientId);
    return this.#held;
  }

  /** Returns a copy that does not end when the client disconnects. Its results are not counted. */
  detach(): EndpointRequest {
    const { requestId, clientId, connection, authorize, charge, usage, headers } = this;
    const { signal } = new AbortController();
    return { requestId, clientId, connection, authorize, charge, usage, headers, signal };
  }

  /** Whether the client disconnected before its response was written. */
  get hasLeft(): boolean {
    return this.#departure.isAborted;
  }

  /** Records that the client disconnected before its response was written. */
  leave(): void {
    this.#departure.abort();
  }
}
