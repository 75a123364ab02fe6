import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AuthenticatedRequest } from "../access/accessControl.ts";
import type { Chunk } from "../jsonrpc/formatResponse.ts";

/** What an endpoint may know of the HTTP request beside its body. */
export interface EndpointRequest {
  readonly requestId: string;
  /** One string a client, for fairness and limits. */
  readonly clientId: string;
  /** What he may call; undefined: everything. */
  readonly authorize?: AuthenticatedRequest["authorize"];
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the caller has left. Made when it is first read: an answer from memory never needs it. */
  readonly signal: AbortSignal;
}

export interface EndpointResponse {
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly chunks: readonly Chunk[];
  /** Value of the Cache-Status header (see formatCacheStatus). */
  readonly cacheStatus: string;
  /** Value of x-forebay-pending, where `pending` was asked. */
  readonly pending?: string | undefined;
}

/** Where requests go that are no JSON-RPC. */
export interface PassThrough {
  web(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): void;
}

/** What stands behind one path. `handle` rejects with RpcError where the whole request is refused. */
export interface Endpoint {
  handle(body: Uint8Array, request: EndpointRequest): Promise<EndpointResponse>;
  /** Takes WebSockets; they are passed through without it. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, admitted: AuthenticatedRequest): void;
  readonly passthrough?: PassThrough | undefined;
}

/** A caller's own id is kept if it cannot spoil a log or a header. */
const REQUEST_ID = /^[\w.:-]{1,128}$/;

/** W3C Trace Context, section 3.2. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Undefined where there is none, or none that may be passed on. */
export const readTraceparent = ({ traceparent }: IncomingHttpHeaders): string | undefined =>
  typeof traceparent === "string" && TRACEPARENT.test(traceparent) ? traceparent : undefined;

/** Ids of requests: the caller's own, else one that no other replica gives. */
export const createRequestIds = (): ((headers: IncomingHttpHeaders) => string) => {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  return ({ "x-request-id": given }) => {
    if (typeof given === "string" && REQUEST_ID.test(given)) return given;
    count++;
    return `${prefix}-${count.toString(36)}`;
  };
};

/** A class for the sake of its getter: see LazyCall in jsonrpc/envelope. */
export class HttpEndpointRequest implements EndpointRequest {
  readonly requestId: string;
  readonly clientId: string;
  readonly authorize: AuthenticatedRequest["authorize"];
  readonly headers: IncomingHttpHeaders;
  #controller: AbortController | undefined;
  #left = false;

  constructor(
    request: IncomingMessage,
    requestId: string,
    { clientId, authorize }: Pick<AuthenticatedRequest, "clientId" | "authorize">,
  ) {
    this.requestId = requestId;
    this.clientId = clientId;
    this.authorize = authorize;
    this.headers = request.headers;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#left) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** The caller has left before its answer was written. */
  leave(): void {
    this.#left = true;
    this.#controller?.abort();
  }
}
