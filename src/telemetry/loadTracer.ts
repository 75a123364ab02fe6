import type * as Api from "@opentelemetry/api";
import { errorText } from "../core/errorText.ts";
import type { Span, SpanAttributes, TraceHeaders, Tracer } from "../core/trace.ts";

export interface TracingOptions {
  /** URL of the receiver's OTLP/HTTP endpoint for traces. Default: as the variables `OTEL_*` say. */
  readonly endpoint?: string | undefined;
  /** Share of calls without a parent that are recorded. Default: as the variables `OTEL_*` say. */
  readonly sampleShare?: number | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const PACKAGES = [
  "@opentelemetry/api",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace-base",
];

/** Whether variables of OpenTelemetry switch tracing on. */
const isOn = (environment: Environment): boolean =>
  environment.OTEL_SDK_DISABLED !== "true" &&
  environment.OTEL_TRACES_EXPORTER !== "none" &&
  Object.entries(environment).some(([name, value]) => name.startsWith("OTEL_") && value !== undefined && value !== "");

/** A span of the SDK. Its steps are its children. */
class RecordedSpan implements Span {
  readonly #api: typeof Api;
  readonly #tracer: Api.Tracer;
  readonly #span: Api.Span;
  readonly #counts = new Map<string, number>();

  constructor(api: typeof Api, tracer: Api.Tracer, span: Api.Span) {
    this.#api = api;
    this.#tracer = tracer;
    this.#span = span;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  child(name: string, attributes: SpanAttributes): Span {
    this.#counts.set(name, this.count(name) + 1);
    const { trace, ROOT_CONTEXT, SpanKind } = this.#api;
    const kind = SpanKind.CLIENT;
    const span = this.#tracer.startSpan(name, { kind, attributes }, trace.setSpan(ROOT_CONTEXT, this.#span));
    return new RecordedSpan(this.#api, this.#tracer, span);
  }

  count(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  end(attributes: SpanAttributes, error?: unknown): void {
    this.#span.setAttributes(attributes);
    if (error !== undefined) {
      const message = errorText(error);
      this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message });
    }
    this.#span.end();
  }
}

/** Reads the parent of a call from its headers, whose form was checked. */
const parentOf = (api: typeof Api, headers: TraceHeaders | undefined): Api.Context => {
  if (headers === undefined) {
    return api.ROOT_CONTEXT;
  }
  const [, traceId = "", spanId = "", flags = "00"] = headers.traceparent.split("-");
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(headers.tracestate !== undefined && { traceState: api.createTraceState(headers.tracestate) }),
  });
};

const loadPackages = async () => {
  try {
    const [api, exporter, resources, sdk] = await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace-base"),
    ]);
    return { api, exporter, resources, sdk };
  } catch (error) {
    throw new Error(`tracing needs packages that are not installed: npm install ${PACKAGES.join(" ")}`, {
      cause: error,
    });
  }
};

/** Creates the provider of spans, which sends them in the background. */
const createProvider = (
  { exporter, resources, sdk }: Awaited<ReturnType<typeof loadPackages>>,
  { endpoint, sampleShare }: TracingOptions,
  version: string,
) => {
  const own = resources.resourceFromAttributes({ "service.name": "forebay", "service.version": version });
  const fromVariables = resources.detectResources({ detectors: [resources.envDetector] });
  const sender = new exporter.OTLPTraceExporter(endpoint === undefined ? {} : { url: endpoint });
  return new sdk.BasicTracerProvider({
    resource: resources.defaultResource().merge(own).merge(fromVariables),
    spanProcessors: [new sdk.BatchSpanProcessor(sender)],
    ...(sampleShare !== undefined && {
      sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sampleShare) }),
    }),
  });
};

/**
 * Creates the tracer. Undefined unless options or the variables `OTEL_*` are set: then no package is loaded.
 * Rejects if the packages are not installed.
 */
export const loadTracer = async (
  options: TracingOptions | undefined,
  environment: Environment,
  version: string,
): Promise<Tracer | undefined> => {
  if (options === undefined && !isOn(environment)) {
    return undefined;
  }
  const packages = await loadPackages();
  const { api } = packages;
  const provider = createProvider(packages, options ?? {}, version);
  const tracer = provider.getTracer("forebay", version);
  return {
    begin: (name, parent, attributes) => {
      const span = tracer.startSpan(name, { kind: api.SpanKind.SERVER, attributes }, parentOf(api, parent));
      return span.isRecording() ? new RecordedSpan(api, tracer, span) : undefined;
    },
    close: () => provider.shutdown(),
  };
};
