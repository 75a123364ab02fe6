import type { IncomingHttpHeaders } from "node:http";
import { type AskedByHeaders, NOTHING_ASKED } from "../core/context.ts";
import type { TraceHeaders } from "../core/trace.ts";
import { invalidRequest, type RpcError } from "../jsonrpc/rpcError.ts";

/** W3C Trace Context, section 3.2: https://www.w3.org/TR/trace-context/#traceparent-header */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A longer value is not forwarded. W3C Baggage, section 3.3.2, requires this length at least. */
const MAX_TRACE_BYTES = 8_192;

/** RFC 9111, section 5.2.1.4. */
const NO_CACHE = /(?:^|,)\s*no-cache\s*(?:,|$)/i;

const shortText = (header: string | string[] | undefined): string | undefined =>
  typeof header === "string" && header !== "" && header.length <= MAX_TRACE_BYTES ? header : undefined;

/** Reads the headers of a trace. Undefined if traceparent is missing or invalid: the others mean nothing without it. */
const readTraceHeaders = ({ traceparent, tracestate, baggage }: IncomingHttpHeaders): TraceHeaders | undefined => {
  if (typeof traceparent !== "string" || !TRACEPARENT.test(traceparent)) {
    return undefined;
  }
  const [state, bag] = [shortText(tracestate), shortText(baggage)];
  return { traceparent, ...(state !== undefined && { tracestate: state }), ...(bag !== undefined && { baggage: bag }) };
};

/** Without the first, `latest` would silently be the head. Another value of the second must not get any answer. */
const faultOf = (confirmations: unknown, required: unknown): RpcError | undefined => {
  if (confirmations !== undefined) {
    const instead = "use a key with confirmations (access.keys[].confirmations)";
    return invalidRequest(`x-forebay-confirmations is not supported: ${instead}`, 400);
  }
  return required === undefined || required === "proven"
    ? undefined
    : invalidRequest("x-forebay-require must be proven", 400);
};

/** Reads what a client asks for by headers, once for a POST or a WebSocket. Most requests have none of them, and share one object. */
export const readAsked = (headers: IncomingHttpHeaders): AskedByHeaders => {
  const {
    traceparent,
    "cache-control": cacheControl,
    "x-forebay-confirmations": confirmations,
    "x-forebay-min-view": minView,
    "x-forebay-require": required,
    "x-forebay-units": units,
  } = headers;
  const isNothing =
    traceparent === undefined &&
    cacheControl === undefined &&
    confirmations === undefined &&
    minView === undefined &&
    required === undefined &&
    units === undefined;
  return isNothing
    ? NOTHING_ASKED
    : {
        traceHeaders: readTraceHeaders(headers),
        noCache: cacheControl !== undefined && NO_CACHE.test(cacheControl),
        needs: required === undefined ? undefined : "proven",
        minView: minView === undefined ? undefined : String(minView),
        wantsUnits: units !== undefined,
        fault: faultOf(confirmations, required),
      };
};
