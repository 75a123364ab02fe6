import type { Config } from "../config/schema.ts";
import type { Context, InboundRequest } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Call } from "../jsonrpc/call.ts";
import { createDispatch, type Dispatch, type Outcome } from "../jsonrpc/dispatch.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { type Handlers, methodLabel } from "../methods/handlers.ts";
import { CallTraces, createCallLog, createCallMetrics } from "../telemetry/callReports.ts";
import type { ChainParts } from "./createReadPipeline.ts";

/** The JSON-RPC dispatchers of one chain. */
export interface ChainDispatch {
  /** Handles calls over HTTP and WebSockets. */
  readonly inView: Dispatch<Context, RpcResponse>;
  /** Rejects each call by its own id, because there is no view for the request. */
  refuse(body: Uint8Array, request: InboundRequest, error: RpcError): ReturnType<Dispatch<InboundRequest, RpcResponse>>;
}

/** Returns the limit of a response in bytes. */
export const maxResponseBytesOf = ({ maxResponseBytes }: Config["server"]): number =>
  maxResponseBytes === "none" ? Number.POSITIVE_INFINITY : maxResponseBytes;

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
export const createChainDispatch = (parts: ChainParts, { lookup, forward }: Handlers): ChainDispatch => {
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
