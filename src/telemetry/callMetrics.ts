import type { CallUsage, InboundRequest } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Outcome } from "../jsonrpc/dispatch.ts";
import { CODES, type RpcError } from "../jsonrpc/rpcError.ts";
import type { OutcomeLabel } from "./clientMetrics.ts";
import type { CounterSeries, HistogramSeries } from "./summedSeries.ts";
import type { Metrics } from "./telemetry.ts";

/** Reads the signal only after an error, because the signal is created on first use. */
const outcomeLabel = (error: RpcError | undefined, context: Pick<InboundRequest, "signal">): OutcomeLabel => {
  if (error === undefined) {
    return "ok";
  }
  if (context.signal.aborted) {
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

/** The metric label and the price of each method. */
export interface MethodPrices {
  readonly methodLabel: (method: string) => string;
  readonly unitsOf: (method: string) => number;
}

/** Whether no call to a node was made for this response. */
const isSaved = ({ status: { hit, collapsed } }: Pick<RpcResponse, "status">): boolean =>
  hit !== undefined || collapsed === true;

/** The series of one method. */
class MethodSeries {
  readonly #seriesOf: (outcome: OutcomeLabel) => CounterSeries;
  readonly #seconds: HistogramSeries;
  readonly #ok: CounterSeries;

  constructor(chain: string, method: string, { requests, requestSeconds }: Metrics) {
    this.#seriesOf = (outcome) => requests.series({ chain, method, outcome });
    this.#seconds = requestSeconds.series({ chain, method });
    this.#ok = this.#seriesOf("ok");
  }

  count(outcome: OutcomeLabel, seconds: number): void {
    (outcome === "ok" ? this.#ok : this.#seriesOf(outcome)).inc();
    this.#seconds.observe(seconds);
  }
}

/** Creates the metrics of calls: counts and durations. `addressUsage` counts the calls of a client without a key. */
export const createCallMetrics = (
  chain: string,
  { methodLabel, unitsOf }: MethodPrices,
  metrics: Metrics,
  addressUsage: (address: string) => CallUsage,
) => {
  const methods = new Map<string, MethodSeries>();
  const savedCalls = metrics.savedCalls.series({ chain });
  const savedUnits = metrics.savedUnits.series({ chain });
  return ({
    call,
    context,
    error,
    reply,
    seconds,
  }: Outcome<Pick<InboundRequest, "signal" | "caller">, RpcResponse>): void => {
    const method = methodLabel(call.method);
    let series = methods.get(method);
    if (series === undefined) {
      series = new MethodSeries(chain, method, metrics);
      methods.set(method, series);
    }
    series.count(outcomeLabel(error, context), seconds);
    const saved = reply !== undefined && isSaved(reply);
    const { clientId, usage = addressUsage(clientId) } = context.caller;
    const units = unitsOf(call.method);
    usage.countCall(units, error !== undefined, saved);
    if (saved) {
      savedCalls.inc();
      savedUnits.inc(units);
    }
    if (reply?.pending !== undefined) {
      metrics.pendingAnswers.inc({ chain, mode: reply.pending });
    }
  };
};
