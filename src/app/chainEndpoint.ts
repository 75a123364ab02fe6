import type { ChainConfig } from "../config/schema.ts";
import { deriveContext } from "../core/deriveContext.ts";
import type { Heads } from "../core/heads.ts";
import type { LazySignal } from "../core/lazySignal.ts";
import type { RequestAdmission, RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { formatCacheStatus } from "../http/cacheStatus.ts";
import {
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
  type PassThrough,
  readTraceHeaders,
} from "../http/endpoint.ts";
import { whenKnown } from "../jsonrpc/awaitable.ts";
import type { DispatchResult } from "../jsonrpc/dispatchResult.ts";
import type { ChainDispatch } from "./chainDispatch.ts";
import type { ChainSources, ClientViews } from "./chainSources.ts";
import type { Shared } from "./shared.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ChainEndpointOptions {
  readonly config: ChainConfig;
  readonly shared: Pick<Shared, "bypassHeader" | "webSockets">;
  readonly upstreams: Pick<Upstreams, "heads">;
  readonly views: Pick<ClientViews, "view">;
  readonly dispatch: ChainDispatch;
  readonly passthrough: PassThrough | undefined;
  readonly gate: ChainSources["gate"];
}

type ClientRequest = Pick<
  EndpointRequest,
  | "signal"
  | "lazySignal"
  | "clientId"
  | "connection"
  | "memory"
  | "headers"
  | "requestId"
  | "authorize"
  | "charge"
  | "usage"
>;

const NO_CACHE = /(?:^|,)\s*no-cache\s*(?:,|$)/i;
const isNoCache = (header: string | undefined): boolean => header !== undefined && NO_CACHE.test(header);

/** The context of a client's request. A class because of its getter: see LazyCall in jsonrpc/envelope.ts. */
class ClientRequestContext implements RequestContext, RequestAdmission {
  readonly view: View;
  readonly deadlineMs: number;
  readonly clientId: string;
  readonly connection: object;
  /** Itself, so that a cache hit needs no other object. */
  readonly admission: RequestAdmission = this;
  isAdmitted = false;
  stateReads = 0;
  failedPending: RequestAdmission["failedPending"];
  readonly memory: RequestContext["memory"];
  readonly bypassCache: boolean;
  readonly noCache: boolean;
  readonly requestId: string;
  readonly traceHeaders: RequestContext["traceHeaders"];
  readonly authorize: RequestContext["authorize"];
  readonly charge: RequestContext["charge"];
  readonly usage: RequestContext["usage"];
  readonly #request: ClientRequest;

  constructor(request: ClientRequest, { config, shared: { bypassHeader }, views }: ChainEndpointOptions) {
    this.view = views.view();
    this.deadlineMs = performance.now() + config.upstream.timeoutMs;
    this.clientId = request.clientId;
    this.connection = request.connection;
    this.memory = request.memory;
    this.bypassCache = bypassHeader !== undefined && request.headers[bypassHeader] !== undefined;
    this.noCache = isNoCache(request.headers["cache-control"]);
    this.requestId = request.requestId;
    this.traceHeaders = readTraceHeaders(request.headers);
    this.authorize = request.authorize;
    this.charge = request.charge;
    this.usage = request.usage;
    this.#request = request;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get lazySignal(): LazySignal | undefined {
    return this.#request.lazySignal;
  }
}

/** The weaker of two views: the request's, and the current one, because a call can be repeated in a later view. */
const headLabel = (first: Heads | undefined, last: Heads | undefined): EndpointResponse["head"] =>
  first === undefined ? undefined : first.isAgreed && last?.isAgreed === true ? "agreed" : "linked";

const toEndpointResponse = (
  result: DispatchResult<RpcResponse>,
  head: EndpointResponse["head"],
  request: RequestAdmission | undefined,
): EndpointResponse => {
  const { status, retryAfterSeconds, chunks, replies, errors } = result;
  const mode = replies.find(({ pending }) => pending !== undefined)?.pending;
  const pending = mode ?? (errors.length > 0 ? request?.failedPending : undefined);
  const cacheStatus = formatCacheStatus(replies, errors.length);
  return { status, retryAfterSeconds, chunks, cacheStatus, pending, head, errors };
};

/** Creates the endpoint of one chain: JSON-RPC over HTTP and WebSocket. Any other request is passed through. */
export const createChainEndpoint = (options: ChainEndpointOptions): Endpoint => {
  const { dispatch, passthrough, gate } = options;
  const { heads } = options.upstreams;

  /** A request waits while this process must not answer from its view, or while the heads of an idle chain are read. */
  const heldBy = (): Promise<void> | undefined => gate?.wait() ?? heads.catchingUp;

  const handle: Endpoint["handle"] = (body, request) => {
    heads.markActive();
    const held = heldBy();
    if (held !== undefined) {
      return held.then(() => handle(body, request));
    }
    const first = heads.current();
    const context = first === undefined ? undefined : new ClientRequestContext(request, options);
    const result = context === undefined ? dispatch.beforeHead(body, request) : dispatch.http(body, context);
    return whenKnown(result, (known) => toEndpointResponse(known, headLabel(first, heads.current()), context));
  };

  const upgrade: Endpoint["upgrade"] = (request, socket, head, admitted) =>
    options.shared.webSockets.accept(
      { request, stream: socket, head, admitted, chain: options.config.name },
      async (body, message) => {
        heads.markActive();
        for (let held = heldBy(); held !== undefined; held = heldBy()) {
          await held;
        }
        if (heads.current() === undefined) {
          return dispatch.beforeHead(body, message);
        }
        const { subscriber, onAnswered } = message;
        const context: RequestContext = new ClientRequestContext(message, options);
        return dispatch.webSocket(body, { ...deriveContext(context, {}), subscriber, onAnswered });
      },
    );

  return { chain: options.config.name, passthrough, handle, upgrade };
};
