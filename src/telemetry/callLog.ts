import type { InboundRequest } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Outcome } from "../jsonrpc/dispatch.ts";
import { CODES, type RpcError } from "../jsonrpc/rpcError.ts";
import { LineSampler } from "./lineSampler.ts";
import type { Log } from "./telemetry.ts";

const SLOW_SECONDS = 1;
const MAX_METHOD_LENGTH = 64;

type LoggedContext = Pick<InboundRequest, "caller" | "requestId" | "signal" | "traceHeaders">;
type CallOutcome = Outcome<LoggedContext, RpcResponse>;

/** Whether forebay or a node failed, and not the client. */
const isFailure = (error: RpcError): boolean => error.status >= 500 || error.code === CODES.INTERNAL;

/** Returns the trace id of a `traceparent` header. */
const traceIdOf = (headers: InboundRequest["traceHeaders"]): string | undefined =>
  headers?.traceparent.split("-", 2)[1];

/** The line of one call, at level debug. */
const formatCall = (chain: string, { call, context, error, reply, seconds }: CallOutcome) => ({
  chain,
  method: call.method.slice(0, MAX_METHOD_LENGTH),
  milliseconds: Math.round(seconds * 1000),
  clientId: context.caller.clientId,
  requestId: context.requestId,
  traceId: traceIdOf(context.traceHeaders),
  node: reply?.node,
  code: error?.code,
});

/** Creates the log of slow and failed calls. Lines are sampled. */
export const createCallLog = (chain: string, log: Log) => {
  const sampled = (text: string) => {
    const sampler = new LineSampler();
    return ({ call, context, error, reply, seconds }: CallOutcome): void => {
      const skipped = sampler.take();
      if (skipped === undefined) {
        return;
      }
      const node = error instanceof NodeError ? error.node : reply?.node;
      log.warn(
        {
          chain,
          method: call.method.slice(0, MAX_METHOD_LENGTH),
          milliseconds: Math.round(seconds * 1000),
          clientId: context.caller.clientId,
          ...(context.requestId !== undefined && { requestId: context.requestId }),
          ...(node !== undefined && { node }),
          ...(error && { code: error.code, reason: error.message }),
          ...(skipped > 0 && { skipped }),
        },
        text,
      );
    };
  };
  const slow = sampled("slow call");
  const failed = sampled("failed call");

  const logsAll = log.isLevelEnabled("debug");
  return (outcome: CallOutcome): void => {
    if (logsAll) {
      log.debug(formatCall(chain, outcome), "call");
    }
    if (outcome.error !== undefined && outcome.context.signal.aborted) {
      return;
    }
    if (outcome.error !== undefined && isFailure(outcome.error)) {
      failed(outcome);
    } else if (outcome.seconds > SLOW_SECONDS) {
      slow(outcome);
    }
  };
};
