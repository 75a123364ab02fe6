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
  isAdmitted = false;
  stateReads = 0;
  failedPending: RequestProgress["failedPending"];
  readonly #source: MessageSource;
  readonly #afterwards: (() => void)[] = [];

  constructor(source: MessageSource, caller: AuthenticatedCaller, memory: RequestMemory | undefined) {
    this.#source = source;
    this.caller = caller;
    this.memory = memory;
  }

  get headers(): IncomingHttpHeaders {
    return this.#source.headers;
  }

  get requestId(): string {
    return this.#source.requestId;
  }

  get traceHeaders(): TraceHeaders | undefined {
    return this.#source.traceHeaders;
  }

  get noCache(): boolean {
    return this.#source.noCache;
  }

  get subscriber(): Subscriber {
    return this.#source.subscriber;
  }

  get signal(): AbortSignal {
    return this.#source.lazySignal.signal;
  }

  get lazySignal(): LazySignal {
    return this.#source.lazySignal;
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
