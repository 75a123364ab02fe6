import type { LazySignal } from "./lazySignal.ts";
import type { RequestContext } from "./rpcSource.ts";

/** Copies a context with some fields replaced. A spread alone would lose the signal, which may be a getter. */
export const deriveContext = <C extends RequestContext>(context: C, changes: Partial<RequestContext>): C => ({
  ...context,
  signal: context.signal,
  ...changes,
});

/** A context with another deadline or signal. It creates no AbortSignal until somebody needs one. */
class DerivedContext implements RequestContext {
  readonly view: RequestContext["view"];
  readonly deadlineMs: number;
  readonly clientId: string;
  readonly connection: object | undefined;
  readonly admission: RequestContext["admission"];
  readonly memory: RequestContext["memory"];
  readonly bypassCache: boolean;
  readonly requestId: string | undefined;
  readonly traceHeaders: RequestContext["traceHeaders"];
  readonly span: RequestContext["span"];
  readonly authorize: RequestContext["authorize"];
  readonly charge: RequestContext["charge"];
  readonly #signals: Pick<RequestContext, "signal" | "lazySignal">;

  constructor(
    context: RequestContext,
    deadlineMs: number,
    signals: Pick<RequestContext, "signal" | "lazySignal"> = context,
  ) {
    this.view = context.view;
    this.deadlineMs = deadlineMs;
    this.clientId = context.clientId;
    this.connection = context.connection;
    this.admission = context.admission;
    this.memory = context.memory;
    this.bypassCache = context.bypassCache;
    this.requestId = context.requestId;
    this.traceHeaders = context.traceHeaders;
    this.span = context.span;
    this.authorize = context.authorize;
    this.charge = context.charge;
    this.#signals = signals;
  }

  get signal(): AbortSignal {
    return this.#signals.signal;
  }

  get lazySignal(): LazySignal | undefined {
    return this.#signals.lazySignal;
  }
}

/** Copies a context with another signal. */
export const withLazySignal = (context: RequestContext, lazySignal: LazySignal): RequestContext =>
  new DerivedContext(context, context.deadlineMs, lazySignal);
