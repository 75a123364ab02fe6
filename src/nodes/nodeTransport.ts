import type { CallScope } from "../core/context.ts";
import { abortReason, DeadlineSignal, isAborted, offAbort, onAbort } from "../core/lazySignal.ts";
import { NodeError } from "../core/node.ts";
import { NODE_SPAN, traced } from "../core/trace.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { CallBatcher } from "./callBatcher.ts";
import { type CancelReason, type NodeCallOutcome, SentCall } from "./exchange.ts";
import type { IdentityGate } from "./identityGate.ts";
import {
  DEFAULT_CONCURRENCY,
  MAX_BATCH_CALLS,
  MAX_WAITING_CALLS,
  type NodeConfig,
  type NodeLabels,
  type TransportOptions,
} from "./nodeConfig.ts";
import { NodeEndpoint } from "./nodeEndpoint.ts";
import { NodeHealth } from "./nodeHealth.ts";
import type { NodeState, OwnCallOutcome } from "./nodeState.ts";
import { BatchLimit, CallRate, RequestLimit } from "./sendLimits.ts";

/** The parts of the node that its transport uses. */
interface TransportParts {
  readonly identity: IdentityGate;
  /** Whether the operator lets the node have this method. */
  serves(method: string): boolean;
  readonly state: NodeState;
  /** Whether another node can answer. */
  hasOther(): boolean;
}

export interface CallOptions {
  /** The caller rejects a result that is not one JSON value, so a large one need not be scanned. */
  readonly isCheckedLater?: boolean;
  /** The call is a read that may share an HTTP request with others, if its method may. */
  readonly isShared?: boolean;
}

/** The methods that follow a node's heads and check its chain. A node gets them whatever its configuration. */
const HEAD_METHODS: ReadonlySet<string> = new Set(["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByHash"]);

/** The calls of forebay's own by which it asks a node that fails or rejects requests: the first one that the node may get. */
const OWN_READ = createCall("eth_getBalance", [`0x${"0".repeat(40)}`, "latest"]);
const OWN_HEAD_READ = createCall("eth_getBlockByNumber", ["latest", false]);
const OWN_CALL_MS = 5_000;

/** One connection in 16 is left for forebay's own requests, so that heads are read while clients wait. */
const requestsOfClients = (concurrency: number): number => Math.max(1, concurrency - Math.ceil(concurrency / 16));

/** Whether the request may hold the result until its response is written. */
const hasRoom = ({ memory }: CallScope, outcome: NodeCallOutcome): boolean =>
  outcome instanceof NodeError || outcome.length <= UNCOUNTED_BYTES || memory?.hold(outcome) !== false;

/** Sends calls to one node within its budget, over HTTP. Each outcome updates state, metrics and health. */
export class NodeTransport {
  readonly name: string;
  readonly health: NodeHealth;
  readonly #parts: TransportParts;
  readonly #labels: NodeLabels;
  /** Whether a method may share an HTTP request with others. */
  readonly #isQuick: (method: string) => boolean;
  readonly #endpoint: NodeEndpoint;
  readonly #requestLimit: RequestLimit;
  readonly #batcher: CallBatcher;
  readonly #ending = new AbortController();

  constructor(config: NodeConfig, options: TransportOptions, parts: TransportParts, telemetry: Telemetry) {
    const { name, concurrency = DEFAULT_CONCURRENCY, batch: { maxCalls } = { maxCalls: MAX_BATCH_CALLS } } = config;
    const { chain, maxWaiting = MAX_WAITING_CALLS, isQuick } = options;
    this.name = name;
    this.#parts = parts;
    this.#labels = { chain, node: name };
    // A call that shares no request waits for none.
    this.#isQuick = (maxCalls === 1 ? undefined : isQuick) ?? (() => false);
    this.health = new NodeHealth(this.#labels, telemetry.metrics, { ...options, budget: config.budget });
    this.#endpoint = new NodeEndpoint(config, options, {
      hasOther: () => parts.hasOther(),
      onRetryAfter: (seconds) => {
        parts.state.pause(seconds * 1000);
        this.#onLimit();
      },
      onLost: () => parts.identity.requireCheck(),
      onHang: (isHung) => this.#onHang(isHung),
    });
    this.#requestLimit = new RequestLimit(requestsOfClients(concurrency));
    this.#batcher = new CallBatcher({
      endpoint: this.#endpoint,
      state: parts.state,
      rate: new CallRate(config.requestsPerSecond),
      maxWaiting,
      onRefused: (call) => this.#refuse(call),
      health: this.health,
      requestLimit: this.#requestLimit,
      batchLimit: new BatchLimit(maxCalls),
    });
  }

  #onHang(isHung: boolean): void {
    this.#parts.state.hung(isHung);
    if (isHung && this.#parts.hasOther()) {
      this.#batcher.failWaiting(this.#endpoint.errors.create("timeout", "the node does not respond"));
    }
  }

  /** The node pauses. A read that waits for it is answered sooner by another node. It moves once, so that no retry is spent. */
  #onLimit(): void {
    const { pauseMs } = this.#parts.state;
    if (pauseMs > 0 && this.#parts.hasOther()) {
      this.#batcher.moveWaiting(this.#limitError(pauseMs));
    }
  }

  #limitError(pauseMs: number): NodeError {
    return new NodeError("rateLimited", this.name, "the node limits the rate", {
      code: CODES.RATE_LIMITED,
      status: 429,
      retryAfterSeconds: Math.ceil(pauseMs / 1000),
    });
  }

  /** True if a further call of a client would wait. */
  get isFull(): boolean {
    return this.#batcher.isFull;
  }

  get isConnectable(): boolean {
    return this.#endpoint.isConnectable;
  }

  /** Sends one call when the budget allows it, after the check of the node's chain if one is required. */
  send(call: Call, scope: CallScope, options: CallOptions = {}): Promise<Uint8Array> {
    const { method } = call;
    if (!this.#parts.serves(method) && !HEAD_METHODS.has(method)) {
      const message = `the method ${method} is not configured for this node`;
      return Promise.reject(new NodeError("unsupportedMethod", this.name, message, { code: CODES.METHOD_NOT_FOUND }));
    }
    const { identity } = this.#parts;
    return identity.isOpen
      ? this.#trace(call, scope, options)
      : identity.confirm().then(() => this.#trace(call, scope, options));
  }

  #trace(call: Call, scope: CallScope, options: CallOptions): Promise<Uint8Array> {
    const { span } = scope;
    return span === undefined
      ? this.#call(call, scope, options)
      : traced(span, NODE_SPAN, { "forebay.node": this.name, "rpc.method": call.method }, () =>
          this.#call(call, scope, options),
        );
  }

  #call(call: Call, scope: CallScope, options: CallOptions): Promise<Uint8Array> {
    const late = this.#lateError(scope);
    return late === undefined ? this.#startCall(call, scope, options) : Promise.reject(late);
  }

  /** Returns the error of a call whose deadline ends before it may be sent. It says nothing about the node. */
  #lateError({ deadlineMs }: CallScope): NodeError | undefined {
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0) {
      return new NodeError("timeout", this.name, "the deadline has passed", { status: 504 });
    }
    const { pauseMs } = this.#parts.state;
    return pauseMs <= leftMs ? undefined : this.#limitError(pauseMs);
  }

  /** Sends several calls in as few HTTP requests as the node allows. Returns one outcome per call, in order. Never rejects. */
  async batch(calls: readonly Call[], scope: CallScope): Promise<NodeCallOutcome[]> {
    const late = this.#lateError(scope);
    if (late !== undefined) {
      return calls.map(() => late);
    }
    if (isAborted(scope)) {
      return calls.map(() => this.#cancelError("disconnected"));
    }
    const attributes = { "forebay.node": this.name, "rpc.batch.size": calls.length };
    return calls.length === 0 ? [] : traced(scope.span, NODE_SPAN, attributes, () => this.#sendTogether(calls, scope));
  }

  #sendTogether(calls: readonly Call[], scope: CallScope): Promise<NodeCallOutcome[]> {
    const { promise, resolve } = Promise.withResolvers<NodeCallOutcome[]>();
    const outcomes = new Array<NodeCallOutcome>(calls.length);
    const { signal, deadlineMs, traceHeaders, isHeadRead } = scope;
    // One listener of the caller's signal and one timer, for all calls.
    const ending = new DeadlineSignal(deadlineMs);
    const onEnd = (): void => ending.abort(abortReason(scope));
    onAbort(scope, onEnd);
    const shared: CallScope = {
      signal,
      lazySignal: ending,
      deadlineMs,
      traceHeaders,
      ...(isHeadRead && { isHeadRead }),
    };
    let waiting = calls.length;
    const sent = calls.map((call, index) =>
      this.#createCall(call, shared, false, (outcome) => {
        outcomes[index] = outcome;
        waiting--;
        if (waiting === 0) {
          ending.end();
          offAbort(scope, onEnd);
          resolve(outcomes);
        }
      }),
    );
    this.#batcher.sendTogether(sent);
    return promise;
  }

  /** Sends a read of forebay's own: its error cannot quote a client. It is not sent during a long pause of the node. */
  async sendOwnCall(): Promise<OwnCallOutcome> {
    const { pauseMs } = this.#parts.state;
    if (pauseMs > OWN_CALL_MS) {
      return "notSent";
    }
    const call = this.#parts.serves(OWN_READ.method) ? OWN_READ : OWN_HEAD_READ;
    const deadlineMs = performance.now() + pauseMs + OWN_CALL_MS;
    try {
      await this.send(call, { signal: this.#ending.signal, deadlineMs });
      return "answered";
    } catch (error) {
      return error instanceof NodeError && error.kind !== "cancelled" ? error : "notSent";
    }
  }

  close(): Promise<void> {
    this.#ending.abort();
    this.#batcher.close(this.#endpoint.errors.create("unreachable", "the node is not used any more"));
    return this.#endpoint.close();
  }

  #startCall(
    call: Call,
    scope: CallScope,
    { isCheckedLater = false, isShared = false }: CallOptions,
  ): Promise<Uint8Array> {
    if (isAborted(scope)) {
      return Promise.reject(this.#cancelError("disconnected"));
    }
    return new Promise((resolve, reject) => {
      const sent = this.#createCall(call, scope, isCheckedLater, (outcome) => {
        if (outcome instanceof NodeError) {
          reject(outcome);
        } else {
          resolve(outcome);
        }
      });
      if (isShared && this.#isQuick(call.method)) {
        this.#batcher.add(sent);
      } else {
        this.#batcher.sendAlone(sent);
      }
    });
  }

  #createCall(
    call: Call,
    scope: CallScope,
    isCheckedLater: boolean,
    onOutcome: (outcome: NodeCallOutcome) => void,
  ): SentCall {
    this.health.beginCall();
    return new SentCall(call, scope, isCheckedLater, (sent, outcome) => onOutcome(this.#complete(sent, outcome)));
  }

  /** Creates the error of a call whose caller disconnected, or whose deadline has passed. */
  #cancelError(why: CancelReason, sent?: SentCall): NodeError {
    if (why === "disconnected" || sent === undefined) {
      return this.#endpoint.errors.create("cancelled", "the client has disconnected");
    }
    const waitedMs = Math.round(sent.scope.deadlineMs - sent.startMs);
    return this.#endpoint.errors.create("timeout", `no response within ${waitedMs} ms`);
  }

  #complete(sent: SentCall, outcome: NodeCallOutcome | CancelReason): NodeCallOutcome {
    const { scope } = sent;
    const isCancelled = typeof outcome === "string";
    const final = isCancelled ? this.#cancelError(outcome, sent) : outcome;
    this.health.endCall();
    // A call that was not sent shows nothing about the node, unless it waited until its deadline.
    const isRefused = final instanceof NodeError && final.kind !== "timeout" && !sent.isSent;
    if (outcome !== "disconnected" && !isRefused) {
      this.#countOutcome(sent, final);
    }
    return hasRoom(scope, final) ? final : this.#endpoint.errors.overBudget();
  }

  /** A call that is refused at once costs its client less than one that is answered too late. */
  #refuse(call: SentCall): void {
    this.health.countRefusal();
    const details = { status: 503, retryAfterSeconds: 1 };
    call.complete(new NodeError("overloaded", this.name, "too many calls are waiting", details));
  }

  #countOutcome({ call: { method }, startMs, sentMs }: SentCall, outcome: NodeCallOutcome): void {
    const error = outcome instanceof NodeError ? outcome : undefined;
    this.health.countOutcome(error?.kind ?? "ok", performance.now() - startMs);
    this.#parts.state.called(error, method, sentMs);
    if (error === undefined) {
      return;
    }
    this.health.recordError(error);
    if (error.kind === "rateLimited") {
      this.#requestLimit.recordOverload(this.#batcher.inFlight);
      this.#onLimit();
    }
  }
}
