/** Headers of W3C Trace Context and Baggage, forwarded to nodes unchanged. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
  readonly baggage?: string;
}

/** The name of the span of a request to a node. */
export const NODE_SPAN = "node request";

export type SpanAttributes = Readonly<Record<string, string | number | undefined>>;

/** A recorded step of a call. */
export interface Span {
  /** 32 hex digits. */
  readonly traceId: string;
  /** Begins a step of this one. */
  child(name: string, attributes: SpanAttributes): Span;
  /** Number of steps of this name so far, those of its own steps excluded. */
  count(name: string): number;
  /** Ends the span. With an error, it is marked as failed. */
  end(attributes: SpanAttributes, error?: unknown): void;
}

/** Records the spans of calls. */
export interface Tracer {
  /** Begins the span of a call. Undefined if this call is not sampled. */
  begin(name: string, parent: TraceHeaders | undefined, attributes: SpanAttributes): Span | undefined;
  /** Sends the spans that wait. */
  close(): Promise<void>;
}

/** Runs a step of a span. Without a span, it only runs. */
export const traced = <T>(
  span: Span | undefined,
  name: string,
  attributes: SpanAttributes,
  run: () => Promise<T>,
): Promise<T> => {
  if (span === undefined) {
    return run();
  }
  const step = span.child(name, attributes);
  return run().then(
    (value) => {
      step.end({});
      return value;
    },
    (error: unknown) => {
      step.end({}, error);
      throw error;
    },
  );
};
