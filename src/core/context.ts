import type { IncomingHttpHeaders } from "node:http";
import type { ResultMemory } from "../jsonrpc/response.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import type { Grade } from "./grade.ts";
import type { Abortable, LazySignal } from "./lazySignal.ts";
import type { Span, TraceHeaders } from "./trace.ts";
import type { PendingMode, View } from "./view.ts";

/** Counts the calls and bytes of one client. */
export interface CallUsage {
  countCall(units: number, isError: boolean, isSaved: boolean): void;
  /** Counts the price of a call to a node that the client caused. */
  spend(units: number): void;
  /** Counts bytes that the client sent. */
  receive(bytes: number): void;
  /** Counts bytes that are sent to the client, before compression. */
  send(bytes: number): void;
}

/** The reason why calls are counted that no handler ran. */
export type ChargeReason = "stateReads" | "invalid" | "method" | "units" | "key" | "payment";

/** Counts calls against the client's rate limits. It rejects nothing: the client's next calls find less room. */
export type Charge = (calls: number, reason: ChargeReason) => void;

/** Throws or rejects with RpcError if the client may not call this method, or not now. */
export type Authorize = (method: string) => Promise<void> | undefined;

/** Who sends requests, and what it may do. `access` creates it once for each authentication, and nothing copies it. */
export interface Caller {
  /** Identifies the client for fairness, limits and logs: the name of its key, else its address. */
  readonly clientId: string;
  /** The identity of the client's connection, for fairness. Undefined for forebay itself. */
  readonly connection?: object | undefined;
  /** Undefined if there is no rule. */
  readonly authorize?: Authorize | undefined;
  /** Undefined if the client has no limit. */
  readonly charge?: Charge | undefined;
  /** Undefined without a key. */
  readonly usage?: CallUsage | undefined;
  /** Counts the units of the calls to nodes that the client causes. Undefined if it has no budget. */
  readonly budget?: { spend(units: number): void } | undefined;
  /** Confirmations that a block needs before the client sees it. Default: none. */
  readonly confirmations?: number | undefined;
  /** The grade that answers need. Proven ones are on an agreed head. Default: stated. */
  readonly needs?: Grade | undefined;
}

/** A connection that can have subscriptions. */
export interface Subscriber {
  /** Functions that end a subscription, by its id. */
  readonly subscriptions: Map<string, () => void>;
  readonly isOpen: boolean;
  /** Sends an event as fragments of one message. `burst` is the number of the turn of the event loop in which it arose. */
  notify(fragments: readonly Buffer[], burst: number): void;
  /** Closes the connection with a reason, because an event cannot be delivered. */
  close(code: number, reason: string): void;
}

/** The state of a request. If its first call to a node is admitted, no further call of it is refused for the node's load. */
export interface RequestProgress {
  hasNodePlace: boolean;
  /** The calls to nodes by which its executions read state, of all items of a batch. */
  stateReads: number;
  /** The price of the calls to nodes that it caused. */
  spentUnits: number;
  /** The price that its own calls would have at a node. */
  directUnits: number;
  /** The source of the first read at `pending` that failed. Errors have no field for it. */
  failedPending?: PendingMode | undefined;
}

/** Creates the state of a request that has no calls yet. */
export const createProgress = (): RequestProgress => ({
  hasNodePlace: false,
  stateReads: 0,
  spentUnits: 0,
  directUnits: 0,
});

/** What a client asks for by headers, beside its calls (docs/answers.md). */
export interface AskedByHeaders {
  /** Forwarded to nodes. */
  readonly traceHeaders?: TraceHeaders | undefined;
  /** State values are read from a node. */
  readonly noCache?: boolean | undefined;
  /** The grade that answers need. Default: stated. */
  readonly needs?: Grade | undefined;
  /** The view that must have been reached, as the client wrote it. */
  readonly minView?: string | undefined;
  /** The response says what the request cost. */
  readonly wantsUnits?: boolean | undefined;
  /** The error of a header that no response can satisfy. */
  readonly fault?: RpcError | undefined;
}

export const NOTHING_ASKED: AskedByHeaders = Object.freeze({});

/** What a request has from its transport. All messages of a WebSocket share one. */
export interface Received {
  /** The headers of the POST, or those of the upgrade. */
  readonly headers: IncomingHttpHeaders;
  readonly asked: AskedByHeaders;
  /** The id of the HTTP request, for logs. */
  readonly requestId?: string | undefined;
  /** The connection of a WebSocket. */
  readonly subscriber?: Subscriber | undefined;
}

/**
 * One request as its transport has received it: an HTTP POST, or a message of a WebSocket. The transport's own object is passed.
 * It aborts when the client disconnects.
 */
export interface InboundRequest extends Abortable {
  readonly caller: Caller;
  readonly received: Received;
  /** Counts the bytes that the request holds until its response is written. Undefined: they are not counted. */
  readonly memory?: ResultMemory | undefined;
  /** Undefined for requests of forebay itself. */
  readonly progress?: RequestProgress | undefined;
  /** Calls `then` after the response to a WebSocket message is sent, so that a subscription's events follow its id. */
  afterResponse?(then: () => void): void;
}

/** What a call to a node needs of its request. A Context is one. */
export interface CallScope extends Abortable {
  /** The client waits until this time, in milliseconds of `performance.now()`. */
  readonly deadlineMs: number;
  /** Undefined for calls of forebay itself. */
  readonly caller?: Caller | undefined;
  readonly traceHeaders?: TraceHeaders | undefined;
  readonly span?: Span | undefined;
  readonly progress?: RequestProgress | undefined;
  readonly memory?: ResultMemory | undefined;
  /** A larger response is an error of the kind `tooLarge`. Default: the limit of the node. */
  readonly maxBytes?: number;
  /** It is awaited although the node hangs: a late head is a vote (docs/architecture.md, Agreement). */
  readonly isHeadRead?: true;
  /** Another node gets the call, as the first retry, if this one pauses while the call waits for it. Default: false. */
  readonly isMovable?: boolean;
}

/** Counts the price of calls to nodes for the request that causes them, and for its client. */
export const spendUnits = ({ caller, progress }: Pick<CallScope, "caller" | "progress">, units: number): void => {
  caller?.budget?.spend(units);
  if (progress !== undefined) {
    progress.spentUnits += units;
  }
};

/** The distance between the view of a request and that of the chain. */
export interface Behind {
  /** The view's `latest` is that number of blocks below the head. */
  readonly confirmations: number;
  /** The view of the chain when the request began. */
  readonly actual: View;
}

/** The fields of a context that most requests do without. */
export interface ContextOptions {
  /** Do not read the cache. The response may still be cached. Default: false. */
  readonly bypassCache?: boolean;
  /** The grade that an answer needs. Default: stated. */
  readonly needs?: Grade | undefined;
  /** The span of the call. Undefined unless tracing is on and the call is sampled. */
  readonly span?: Span | undefined;
  /** What ends the call. Default: the request. */
  readonly ending?: Abortable;
  /** The client wants blocks with confirmations. Default: the newest blocks. */
  readonly behind?: Behind | undefined;
  /** See CallScope. */
  readonly isMovable?: boolean;
}

/** The fields that may differ between the calls of one request. */
export interface ContextChanges extends ContextOptions {
  readonly view?: View;
  readonly deadlineMs?: number;
}

/** What the calls of one request share: the request with its caller, one view, and one deadline. Immutable: see `with`. */
export class Context implements CallScope {
  readonly request: InboundRequest;
  readonly view: View;
  /** The client waits until this time, in milliseconds of `performance.now()`. */
  readonly deadlineMs: number;
  readonly bypassCache: boolean;
  readonly needs: Grade;
  readonly span: Span | undefined;
  readonly behind: Behind | undefined;
  readonly isMovable: boolean;
  readonly #ending: Abortable;

  constructor(
    request: InboundRequest,
    view: View,
    deadlineMs: number,
    { bypassCache = false, needs = "stated", span, ending = request, behind, isMovable = false }: ContextOptions = {},
  ) {
    this.request = request;
    this.view = view;
    this.deadlineMs = deadlineMs;
    this.bypassCache = bypassCache;
    this.needs = needs;
    this.span = span;
    this.behind = behind;
    this.isMovable = isMovable;
    this.#ending = ending;
  }

  get caller(): Caller {
    return this.request.caller;
  }

  /** Creates an AbortController: see `onAbort` in core/lazySignal.ts. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get lazySignal(): LazySignal | undefined {
    return this.#ending.lazySignal;
  }

  get received(): Received {
    return this.request.received;
  }

  get traceHeaders(): TraceHeaders | undefined {
    return this.request.received.asked.traceHeaders;
  }

  get noCache(): boolean {
    return this.request.received.asked.noCache === true;
  }

  get memory(): ResultMemory | undefined {
    return this.request.memory;
  }

  get progress(): RequestProgress | undefined {
    return this.request.progress;
  }

  /** Returns a context of the same request with some fields replaced. */
  with({
    view = this.view,
    deadlineMs = this.deadlineMs,
    bypassCache = this.bypassCache,
    needs = this.needs,
    span = this.span,
    ending = this.#ending,
    behind = this.behind,
    isMovable = this.isMovable,
  }: ContextChanges): Context {
    // A new option that is missing here is an error of types.
    const options: Required<ContextOptions> = { bypassCache, needs, span, ending, behind, isMovable };
    return new Context(this.request, view, deadlineMs, options);
  }

  /** Returns a context of the same request that wants no confirmations: its view is the one that the chain had. */
  withoutConfirmations(): Context {
    const { request, deadlineMs, bypassCache, needs, span, behind } = this;
    return behind === undefined
      ? this
      : new Context(request, behind.actual, deadlineMs, { bypassCache, needs, span, ending: this.#ending });
  }
}

/** The context of an execution that reads state. */
export type StateReadContext = Pick<Context, "caller" | "progress" | "noCache" | "bypassCache">;

/** The transport of requests of forebay itself. */
export const NOT_RECEIVED: Received = Object.freeze({ headers: {}, asked: NOTHING_ASKED });

/** Creates the context of a request of forebay itself. `clientId` names its purpose. `caller`: the client that pays for it. */
export const ownContext = (
  clientId: string,
  view: View,
  {
    signal,
    deadlineMs,
    caller = { clientId },
    ...options
  }: Pick<CallScope, "signal" | "deadlineMs" | "caller"> & ContextOptions,
): Context => new Context({ caller, received: NOT_RECEIVED, signal }, view, deadlineMs, options);
