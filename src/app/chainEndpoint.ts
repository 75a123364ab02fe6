import type { AskedByHeaders, Context, InboundRequest } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { noHead, type RequestViews } from "../heads/requestViews.ts";
import { PositionTexts } from "../heads/viewPosition.ts";
import { type Endpoint, type EndpointResponse, type PassThrough, toEndpointResponse } from "../http/endpoint.ts";
import { ProofHeader } from "../http/proofHeader.ts";
import { readAsked } from "../http/requestHeaders.ts";
import { type Awaitable, type Call, whenKnown } from "../jsonrpc/call.ts";
import { createDispatch, type Dispatch, type Outcome } from "../jsonrpc/dispatch.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { type Handlers, methodLabel } from "../methods/handlers.ts";
import { CallTraces, createCallLog, createCallMetrics } from "../telemetry/callReports.ts";
import type { ChainParts } from "./createReadPipeline.ts";
import { maxResponseBytesOf } from "./shared.ts";

/** The JSON-RPC dispatchers of one chain. */
interface ChainDispatch {
  /** Handles calls over HTTP and WebSockets. */
  readonly inView: Dispatch<Context, RpcResponse>;
  /** Rejects each call by its own id, because there is no view for the request. */
  refuse(body: Uint8Array, request: InboundRequest, error: RpcError): ReturnType<Dispatch<InboundRequest, RpcResponse>>;
}

/** The context of a call. A request without a view has no other. */
type CallContext = Pick<InboundRequest, "caller" | "received" | "signal" | "progress"> & Pick<Partial<Context>, "span">;

const createCommonOptions = ({ config: { name }, shared: { server, usages, telemetry }, unitsOf }: ChainParts) => {
  const prices = { methodLabel, unitsOf };
  const count = createCallMetrics(name, prices, telemetry.metrics, usages.addresses(name));
  const log = createCallLog(name, telemetry);
  const { tracer } = telemetry;
  const traces = tracer && new CallTraces({ chain: name, methodLabel, tracer });
  return {
    traces,
    maxBatch: server.maxBatch,
    maxResponseBytes: maxResponseBytesOf(server),
    authorize: ({ method }: Call, { caller }: CallContext) => caller.authorize?.(method),
    onInvalid: ({ caller }: CallContext) => caller.charge?.(1, "invalid"),
    onOutcome: (outcome: Outcome<CallContext, RpcResponse>) => {
      count(outcome);
      log(outcome);
      traces?.end(outcome);
    },
    onError: (error: unknown, { method }: Call, { signal }: CallContext) => {
      // A client that disconnects is not an error.
      if (!signal.aborted) {
        telemetry.log.error({ err: error, chain: name, method }, "a call failed");
      }
    },
  };
};

interface RefusedContext extends CallContext {
  readonly error: RpcError;
}

const memoryOf = ({ memory }: Context): Context["memory"] => memory;

/** Creates the dispatchers of one chain. */
const createChainDispatch = (parts: ChainParts, { lookup, forward }: Handlers): ChainDispatch => {
  const { traces, ...common } = createCommonOptions(parts);
  const traced = traces && {
    beginCall: (call: Call, context: Context): Context => traces.begin(call, context),
  };
  const refusing = createDispatch<RefusedContext, RpcResponse>({
    ...common,
    lookup: () => undefined,
    forward: async (_, { error }) => {
      throw error;
    },
  });
  return {
    inView: createDispatch<Context, RpcResponse>({ ...common, ...traced, memoryOf, lookup, forward }),
    refuse: (body, request, error) => {
      const { caller, received } = request;
      return refusing(body, {
        ...{ caller, received, error },
        get signal() {
          return request.signal;
        },
      });
    },
  };
};

/** Throws RpcError (400) for a header that no response can satisfy. */
const refuseFault = ({ fault }: AskedByHeaders): void => {
  if (fault !== undefined) {
    throw fault;
  }
};

/** Dispatches a body in the view of its request. Undefined: the chain has no head yet. */
const createDispatchIn =
  (chain: string, dispatch: ChainDispatch, views: RequestViews) =>
  (body: Uint8Array, request: InboundRequest, context: Context | undefined) => {
    if (context === undefined) {
      return dispatch.refuse(body, request, noHead(chain));
    }
    views.recordCalls(body);
    return dispatch.inView(body, context);
  };

/** Creates the function that counts responses by what decided on the served head. */
const createHeadCount = ({ config: { name: chain }, shared }: ChainParts) => {
  const { headResponses } = shared.telemetry.metrics;
  const series = {
    agreed: headResponses.series({ chain, head: "agreed" }),
    linked: headResponses.series({ chain, head: "linked" }),
  };
  return ({ head }: Pick<EndpointResponse, "head">): void => {
    if (head !== undefined) {
      series[head].inc();
    }
  };
};

/** Creates the function that accepts WebSockets. Each message is dispatched in the newest view. */
const createUpgrade =
  (
    { config: { name: chain }, shared: { webSockets }, upstreams: { heads } }: ChainParts,
    views: RequestViews,
    dispatchIn: ReturnType<typeof createDispatchIn>,
  ): NonNullable<Endpoint["upgrade"]> =>
  (request, stream, head, admitted) => {
    const asked = readAsked(request.headers);
    refuseFault(asked);
    webSockets.accept({ request, asked, stream, head, admitted, chain }, async (body, message) => {
      heads.markActive();
      await heads.catchingUp;
      await views.untilKnown(message);
      return dispatchIn(body, message, views.contextOf(message));
    });
  };

/** Creates the endpoint of one chain: JSON-RPC over HTTP and WebSocket. Any other request is passed through. */
export const createChainEndpoint = (
  parts: ChainParts,
  views: RequestViews,
  handlers: Handlers,
  passthrough: PassThrough | undefined,
): Endpoint => {
  const { name: chain } = parts.config;
  const { heads } = parts.upstreams;
  const dispatch = createChainDispatch(parts, handlers);
  const dispatchIn = createDispatchIn(chain, dispatch, views);
  const proofHeader = new ProofHeader();
  const texts = new PositionTexts();
  const countHead = createHeadCount(parts);

  const begin = (body: Uint8Array, request: InboundRequest, hasWaited = false): Awaitable<EndpointResponse> => {
    heads.markActive();
    // The heads of an idle chain are read first.
    const catchingUp = heads.catchingUp;
    if (catchingUp !== undefined) {
      return catchingUp.then(() => begin(body, request, hasWaited));
    }
    const known = views.untilKnown(request);
    return known === undefined
      ? answerWhenNewEnough(body, request, hasWaited)
      : known.then(() => answerWhenNewEnough(body, request, hasWaited));
  };

  /** Waits for the view that the client asks for. Meanwhile the chain may have become idle, so it begins again. */
  const answerWhenNewEnough = (
    body: Uint8Array,
    request: InboundRequest,
    hasWaited: boolean,
  ): Awaitable<EndpointResponse> => {
    const tooOld = views.untilNewEnough(request, hasWaited);
    return tooOld instanceof Promise
      ? tooOld.then((error) => (error === undefined ? begin(body, request, true) : answer(body, request, error)))
      : answer(body, request, tooOld);
  };

  const answer = (body: Uint8Array, request: InboundRequest, error?: RpcError): Awaitable<EndpointResponse> => {
    const first = heads.current();
    const context = views.contextOf(request);
    const view = context && texts.of(context.view);
    const result = error === undefined ? dispatchIn(body, request, context) : dispatch.refuse(body, request, error);
    return whenKnown(result, (known) => {
      const response = toEndpointResponse(known, request, { first, last: heads.current(), view, proofHeader });
      countHead(response);
      return response;
    });
  };

  const handle = (body: Uint8Array, request: InboundRequest): Awaitable<EndpointResponse> => {
    refuseFault(request.received.asked);
    return begin(body, request);
  };

  return { chain, passthrough, handle, upgrade: createUpgrade(parts, views, dispatchIn) };
};
