import type { IncomingHttpHeaders } from "node:http";
import type { AuthenticatedCaller } from "../access/access.ts";
import type { InboundRequest, RequestProgress, Subscriber } from "../core/context.ts";
import type { LazySignal } from "../core/lazySignal.ts";
import type { TraceHeaders } from "../core/trace.ts";
import type { RequestMemory } from "../http/requestMemory.ts";

/** What the messages of one connection share. */
export interface MessageSource {
  readonly headers: IncomingHttpHeaders;
  readonly requestId: string;
  readonly traceHeaders: TraceHeaders | undefined;
  readonly noCache: boolean;
  readonly subscriber: Subscriber;
  /** Aborted when the connection is closed. */
  readonly lazySignal: LazySignal;
}

/** One message of a client, until its response is sent. */
export class Message implements InboundRequest, RequestProgress {
  readonly caller: AuthenticatedCaller;
  readonly memory: RequestMemory | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly requestId: string;
  readonly traceHeaders: TraceHeaders | undefined;
  readonly noCache: boolean;
  readonly subscriber: Subscriber;
  readonly lazySignal: LazySignal;
  isAdmitted = false;
  stateReads = 0;
  failedPending: RequestProgress["failedPending"];
  readonly #afterwards: (() => void)[] = [];

  constructor(
    { headers, requestId, traceHeaders, noCache, subscriber, lazySignal }: MessageSource,
    caller: AuthenticatedCaller,
    memory: RequestMemory | undefined,
  ) {
    this.headers = headers;
    this.requestId = requestId;
    this.traceHeaders = traceHeaders;
    this.noCache = noCache;
    this.subscriber = subscriber;
    this.lazySignal = lazySignal;
    this.caller = caller;
    this.memory = memory;
  }

  /** Created on first use, because a cache hit never needs it. */
  get signal(): AbortSignal {
    return this.lazySignal.signal;
  }

  get progress(): this {
    return this;
  }

  afterResponse(then: () => void): void {
    this.#afterwards.push(then);
  }

  /** Runs what waits for the response. */
  end(): void {
    for (const then of this.#afterwards) {
      then();
    }
  }
}
