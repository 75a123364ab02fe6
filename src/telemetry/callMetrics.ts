import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Outcome } from "../jsonrpc/dispatch.ts";
import { CODES, type RpcError } from "../jsonrpc/rpcError.ts";
import type { Metrics } from "./telemetry.ts";

/** What a client received, as a metric label; who `left` did not wait for it. */
export const OUTCOMES = [
  "ok",
  "left",
  "invalid",
  "refused",
  "limited",
  "nodeError",
  "unavailable",
  "timeout",
  "tooLarge",
  "internal",
] as const;
type OutcomeLabel = (typeof OUTCOMES)[number];

const label = (error: RpcError | undefined, { signal }: Pick<RequestContext, "signal">): OutcomeLabel => {
  if (error === undefined) return "ok";
  if (signal.aborted) return "left";
  if (error.status === 503) return "unavailable";
  if (error.status === 504) return "timeout";
  if (error instanceof NodeError) return "nodeError";
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

/** Counts and times every call; the children of a metric are looked up once. */
export const createCallMetrics = (chain: string, methodLabel: (method: string) => string, metrics: Metrics) => {
  const counters = new Map<string, ReturnType<Metrics["requests"]["labels"]>>();
  const timers = new Map<string, ReturnType<Metrics["requestSeconds"]["labels"]>>();
  const found = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
    const existing = map.get(key);
    if (existing !== undefined) return existing;
    const made = make();
    map.set(key, made);
    return made;
  };
  return ({ call, context, error, reply, seconds }: Outcome<Pick<RequestContext, "signal">, RpcResponse>): void => {
    const method = methodLabel(call.method);
    const outcome = label(error, context);
    found(counters, method + outcome, () => metrics.requests.labels({ chain, method, outcome })).inc();
    found(timers, method, () => metrics.requestSeconds.labels({ chain, method })).observe(seconds);
    if (reply?.pending !== undefined) metrics.pendingAnswers.inc({ chain, mode: reply.pending });
  };
};
