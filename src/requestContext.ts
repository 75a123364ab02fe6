import type { CallContext } from "./chain/source.ts";
import type { View } from "./chain/view.ts";
import { type EndpointRequest, readTraceparent } from "./server/endpoint.ts";

/** The context of one HTTP request. A class, since V8 makes every object literal with a getter slow; `signal` costs only whom it serves. */
export class RequestContext implements CallContext {
  readonly view: View;
  readonly deadlineMs: number;
  readonly fresh: boolean;
  readonly #request: EndpointRequest;

  constructor(request: EndpointRequest, view: View, deadlineMs: number, fresh: boolean) {
    this.#request = request;
    this.view = view;
    this.deadlineMs = deadlineMs;
    this.fresh = fresh;
  }

  get caller(): string {
    return this.#request.caller;
  }

  get permit(): CallContext["permit"] {
    return this.#request.permit;
  }

  get requestId(): string {
    return this.#request.requestId;
  }

  get traceparent(): string | undefined {
    return readTraceparent(this.#request.headers);
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }
}
