import type { ChainConfig } from "../config/schema.ts";
import { Context, type InboundRequest, type RequestAdmission } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Endpoint, type EndpointResponse, formatCacheStatus, type PassThrough } from "../http/endpoint.ts";
import { whenKnown } from "../jsonrpc/call.ts";
import type { DispatchResult } from "../jsonrpc/response.ts";
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

const BYPASS = { bypassCache: true };

/** Creates the endpoint of one chain: JSON-RPC over HTTP and WebSocket. Any other request is passed through. */
export const createChainEndpoint = (options: ChainEndpointOptions): Endpoint => {
  const { dispatch, passthrough, gate } = options;
  const { heads } = options.upstreams;
  const { bypassHeader } = options.shared;
  const { timeoutMs } = options.config.upstream;

  /** Takes the view of a request. Undefined before the first head. */
  const contextOf = (request: InboundRequest): Context | undefined =>
    heads.current() === undefined
      ? undefined
      : new Context(
          request,
          options.views.view(),
          performance.now() + timeoutMs,
          bypassHeader !== undefined && request.headers[bypassHeader] !== undefined ? BYPASS : undefined,
        );

  /** A request waits while this process must not answer from its view, or while the heads of an idle chain are read. */
  const heldBy = (): Promise<void> | undefined => gate?.wait() ?? heads.catchingUp;

  const handle: Endpoint["handle"] = (body, request) => {
    heads.markActive();
    const held = heldBy();
    if (held !== undefined) {
      return held.then(() => handle(body, request));
    }
    const first = heads.current();
    const context = contextOf(request);
    const result = context === undefined ? dispatch.beforeHead(body, request) : dispatch.inView(body, context);
    return whenKnown(result, (known) =>
      toEndpointResponse(known, headLabel(first, heads.current()), request.admission),
    );
  };

  const upgrade: Endpoint["upgrade"] = (request, socket, head, admitted) =>
    options.shared.webSockets.accept(
      { request, stream: socket, head, admitted, chain: options.config.name },
      async (body, message) => {
        heads.markActive();
        for (let held = heldBy(); held !== undefined; held = heldBy()) {
          await held;
        }
        const context = contextOf(message);
        return context === undefined ? dispatch.beforeHead(body, message) : dispatch.inView(body, context);
      },
    );

  return { chain: options.config.name, passthrough, handle, upgrade };
};
