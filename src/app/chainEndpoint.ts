import type { ChainConfig } from "../config/schema.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { formatCacheStatus } from "../http/cacheStatus.ts";
import { type Endpoint, type EndpointRequest, type PassThrough, readTraceparent } from "../http/endpoint.ts";
import { pendingModeOfError } from "../methods/pendingModeErrors.ts";
import type { ChainDispatch } from "./chainDispatch.ts";
import type { PendingViews } from "./createPendingViews.ts";
import type { Shared } from "./shared.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ChainEndpointOptions {
  readonly config: ChainConfig;
  readonly shared: Pick<Shared, "bypassHeader" | "webSockets">;
  readonly upstreams: Pick<Upstreams, "heads">;
  readonly views: Pick<PendingViews, "view">;
  readonly dispatch: ChainDispatch;
  readonly passthrough: PassThrough | undefined;
}

type Admitted = Parameters<NonNullable<Endpoint["upgrade"]>>[3];

/** Creates the function that gives a client's call its view and its deadline. */
const createContexts =
  ({ config, shared: { bypassHeader }, views }: ChainEndpointOptions) =>
  (request: Pick<EndpointRequest, "signal" | "clientId" | "headers" | "requestId" | "authorize">): RequestContext => ({
    view: views.view(),
    signal: request.signal,
    deadlineMs: performance.now() + config.upstream.timeoutMs,
    clientId: request.clientId,
    bypassCache: bypassHeader !== undefined && request.headers[bypassHeader] !== undefined,
    requestId: request.requestId,
    traceparent: readTraceparent(request.headers),
    authorize: request.authorize,
  });

/** Creates the endpoint of one chain: JSON-RPC over HTTP and WebSocket. Any other request is passed through. */
export const createChainEndpoint = (options: ChainEndpointOptions): Endpoint => {
  const { dispatch, passthrough } = options;
  const { heads } = options.upstreams;
  const contextOf = createContexts(options);

  const handle: Endpoint["handle"] = async (body, request) => {
    heads.markActive();
    const { replies, errors, ...result } = await (heads.current() === undefined
      ? dispatch.beforeHead(body, request)
      : dispatch.http(body, contextOf(request)));
    const mode = replies.find(({ pending }) => pending !== undefined)?.pending;
    const pending = mode ?? (errors.length > 0 ? pendingModeOfError(errors) : undefined);
    return { ...result, cacheStatus: formatCacheStatus(replies, errors.length), pending };
  };

  const upgrade: Endpoint["upgrade"] = (request, socket, head, { clientId, authorize }: Admitted) =>
    options.shared.webSockets.accept(request, socket, head, async (body, message) => {
      heads.markActive();
      const { subscriber, onAnswered, requestId, signal } = message;
      if (heads.current() === undefined) {
        return dispatch.beforeHead(body, { requestId, clientId, authorize, signal });
      }
      return dispatch.webSocket(body, { ...contextOf({ ...message, clientId, authorize }), subscriber, onAnswered });
    });

  return { passthrough, handle, upgrade };
};
