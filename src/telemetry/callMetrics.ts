import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Outcome } from "../jsonrpc/dispatch.ts";
import { CODES, type RpcError } from "../jsonrpc/rpcError.ts";
import type { OutcomeLabel } from "./requestMetrics.ts";
import type { Metrics } from "./telemetry.ts";

const outcomeLabel = (error: RpcError | undefined, { signal }: Pick<RequestContext, "signal">): OutcomeLabel => {
  if (error === undefined) {
    return "ok";
  }
  if (signal.aborted) {
    return "left";
  }
  if (error.status === 503) {
    return "unavailable";
  }
  if (error.status === 504) {
    return "timeout";
  }
  if (error instanceof NodeError) {
    return "nodeError";
  }
  switch (error.code) {
    case CODES.METHOD_NOT_FOUND:
    case CODES.UNAUTHORIZED:
      return "refused";
    case CODES.RATE_LIMITED:
      return "limited";
    case CODES.RESPONSE_TOO_LARGE:
      return "tooLarge";
    case CODES.INTERNAL:
      return "internal";
    default:
      return "invalid";
  }
};

/** Creates the metrics of calls: counts and durations. Labels are looked up once. */
export const createCallMetrics = (chain: string, methodLabel: (method: string) => string, metrics: Metrics) => {
  const counters = new Map<string, ReturnType<Metrics["requests"]["labels"]>>();
  const timers = new Map<string, ReturnType<Metrics["requestSeconds"]["labels"]>>();
  const getOrCreate = <K, V>(map: Map<K, V>, key: K, create: () => V): V => {
    const existing = map.get(key);
    if (existing !== undefined) {
      return existing;
    }
    const created = create();
    map.set(key, created);
    return created;
  };
  return ({ call, context, error, reply, seconds }: Outcome<Pick<RequestContext, "signal">, RpcResponse>): void => {
    const method = methodLabel(call.method);
    const outcome = outcomeLabel(error, context);
    getOrCreate(counters, method + outcome, () => metrics.requests.labels({ chain, method, outcome })).inc();
    getOrCreate(timers, method, () => metrics.requestSeconds.labels({ chain, method })).observe(seconds);
    if (reply?.pending !== undefined) {
      metrics.pendingAnswers.inc({ chain, mode: reply.pending });
    }
  };
};
