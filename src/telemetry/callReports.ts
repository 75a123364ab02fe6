import type { CallUsage, Context, InboundRequest } from "../core/context.ts";
import { isNodeFault, NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { NODE_SPAN, type TraceHeaders, type Tracer } from "../core/trace.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { Outcome } from "../jsonrpc/dispatch.ts";
import { CODES, type RpcError } from "../jsonrpc/rpcError.ts";
import type { OutcomeLabel } from "./clientMetrics.ts";
import type { CounterSeries, HistogramSeries } from "./summedSeries.ts";
import { LineSampler, type Metrics, type Telemetry } from "./telemetry.ts";

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
    return isNodeFault(error.kind) ? "unavailable" : "nodeError";
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
interface MethodPrices {
  readonly methodLabel: (method: string) => string;
  readonly unitsOf: (method: string) => number;
}

/** The outcomes of calls that a node would have billed: forebay refused the others. */
const BILLED: ReadonlySet<OutcomeLabel> = new Set(["ok", "nodeError", "invalid"]);

/** The outcomes of calls that the client may not make, or not now. They are no usage. */
const REFUSED: ReadonlySet<OutcomeLabel> = new Set(["refused", "limited"]);

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
  const byProof = {
    proven: metrics.proofAnswers.series({ chain, label: "proven" }),
    checked: metrics.proofAnswers.series({ chain, label: "checked" }),
    stated: metrics.proofAnswers.series({ chain, label: "stated" }),
  };
  const savedCalls = metrics.savedCalls.series({ chain });
  const savedUnits = metrics.savedUnits.series({ chain });
  return ({
    call,
    context,
    error,
    reply,
    seconds,
  }: Outcome<Pick<InboundRequest, "signal" | "caller" | "progress">, RpcResponse>): void => {
    const method = methodLabel(call.method);
    let series = methods.get(method);
    if (series === undefined) {
      series = new MethodSeries(chain, method, metrics);
      methods.set(method, series);
    }
    const outcome = outcomeLabel(error, context);
    series.count(outcome, seconds);
    if (reply !== undefined) {
      byProof[reply.grade ?? "stated"].inc();
    }
    const saved = reply !== undefined && isSaved(reply);
    if (REFUSED.has(outcome)) {
      return;
    }
    const { clientId, usage = addressUsage(clientId) } = context.caller;
    const units = unitsOf(call.method);
    usage.countCall(units, error !== undefined, saved);
    if (context.progress !== undefined && BILLED.has(outcome)) {
      context.progress.directUnits += units;
    }
    if (saved) {
      savedCalls.inc();
      savedUnits.inc(units);
    }
    if (reply?.pending !== undefined) {
      metrics.pendingAnswers.inc({ chain, mode: reply.pending });
    }
  };
};

const SLOW_SECONDS = 1;
const MAX_METHOD_LENGTH = 64;

type LoggedContext = Pick<InboundRequest, "caller" | "received" | "signal"> & Pick<Partial<Context>, "span">;
type CallOutcome = Outcome<LoggedContext, RpcResponse>;

/** The outcomes of calls that forebay or a node failed to answer. */
const FAILED: ReadonlySet<OutcomeLabel> = new Set(["unavailable", "timeout", "internal"]);

/** Returns the trace id of a `traceparent` header. */
const traceIdOf = (headers: TraceHeaders | undefined): string | undefined => headers?.traceparent.split("-", 2)[1];

/** The line of one call, at level debug. */
const formatCall = (chain: string, { call, context, error, reply, seconds }: CallOutcome) => ({
  chain,
  method: call.method.slice(0, MAX_METHOD_LENGTH),
  milliseconds: Math.round(seconds * 1000),
  clientId: context.caller.clientId,
  requestId: context.received.requestId,
  traceId: traceIdOf(context.received.asked.traceHeaders),
  node: reply?.node,
  code: error?.code,
});

/** The source of a response: a cache, or the reason why a node was asked. */
const cacheOf = ({ status: { hit, fwd } }: RpcResponse): string | undefined => hit ?? fwd;

const MICROSECONDS = 1_000;

/** The line of a sampled call. It has no parameters, and nothing of the client but the trace. */
const formatSample = (chain: string, { call, context, error, reply, seconds }: CallOutcome) => ({
  chain,
  method: call.method.slice(0, MAX_METHOD_LENGTH),
  outcome: outcomeLabel(error, context),
  cache: reply && cacheOf(reply),
  milliseconds: Math.round(seconds * 1000 * MICROSECONDS) / MICROSECONDS,
  traceId: context.span?.traceId ?? traceIdOf(context.received.asked.traceHeaders),
});

/** Creates the log of calls: those that `requestLog` samples, and slow and failed ones, of which there are few lines. */
export const createCallLog = (chain: string, { log, requestLog }: Pick<Telemetry, "log" | "requestLog">) => {
  const sampled = (text: string) => {
    const sampler = new LineSampler();
    return ({ call, context, error, reply, seconds }: CallOutcome): void => {
      const skipped = sampler.take();
      if (skipped === undefined) {
        return;
      }
      const node = error instanceof NodeError ? error.node : reply?.node;
      const { requestId } = context.received;
      log.warn(
        {
          chain,
          method: call.method.slice(0, MAX_METHOD_LENGTH),
          milliseconds: Math.round(seconds * 1000),
          clientId: context.caller.clientId,
          ...(requestId !== undefined && { requestId }),
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

  return (outcome: CallOutcome): void => {
    if (requestLog.share > 0 && Math.random() < requestLog.share) {
      log.info(formatSample(chain, outcome), "sampled call");
    }
    // A reload changes the level.
    if (log.isLevelEnabled("debug")) {
      log.debug(formatCall(chain, outcome), "call");
    }
    const label = outcomeLabel(outcome.error, outcome.context);
    if (FAILED.has(label)) {
      failed(outcome);
    } else if (label !== "left" && outcome.seconds > SLOW_SECONDS) {
      slow(outcome);
    }
  };
};

interface CallTracesOptions {
  readonly chain: string;
  readonly methodLabel: (method: string) => string;
  readonly tracer: Tracer;
}

/** Records one span per call. */
export class CallTraces {
  readonly #options: CallTracesOptions;

  constructor(options: CallTracesOptions) {
    this.#options = options;
  }

  /** Begins the span of a call, and returns the context that has it. */
  begin({ method }: Call, context: Context): Context {
    const { chain, methodLabel, tracer } = this.#options;
    const label = methodLabel(method);
    const span = tracer.begin(label, context.traceHeaders, {
      "rpc.system": "jsonrpc",
      "rpc.method": label,
      "forebay.chain": chain,
    });
    return span === undefined ? context : context.with({ span });
  }

  /** Ends the span of a call. */
  end({ context: { span }, reply, error }: Outcome<Pick<Partial<Context>, "span">, RpcResponse>): void {
    if (span === undefined) {
      return;
    }
    span.end(
      {
        "forebay.cache": reply && cacheOf(reply),
        "forebay.node": reply?.node,
        "forebay.attempts": span.count(NODE_SPAN),
        "rpc.jsonrpc.error_code": error?.code,
      },
      error,
    );
  }
}
