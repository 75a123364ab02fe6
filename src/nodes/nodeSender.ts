import { abortReason, isAborted, LazySignal, offAbort, onAbort } from "../core/lazySignal.ts";
import { NodeError, type Reach } from "../core/node.ts";
import { NODE_SPAN, traced } from "../core/trace.ts";
import type { Call } from "../jsonrpc/call.ts";
import { type MemoryBudget, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BatchLimit } from "./batchLimit.ts";
import { type Breaker, type BreakerOptions, createBreaker } from "./breaker.ts";
import { type Budget, createBudget } from "./budget.ts";
import { CallAdmission } from "./callAdmission.ts";
import { CallBatcher } from "./callBatcher.ts";
import { isFault } from "./errorKind.ts";
import { budgetError, createNodeClient, type NodeClient } from "./nodeClient.ts";
import { NodeCounts } from "./nodeCounts.ts";
import { factsOf, reasonOf } from "./nodeRefusals.ts";
import type { ObservedHealth } from "./observedHealth.ts";
import { RequestLimit } from "./requestLimit.ts";
import { SendPermits } from "./sendPermits.ts";
import { type CallSender, type Leaving, type NodeCallOutcome, SentCall } from "./sentCall.ts";
import type { CallOptions } from "./upstreamNode.ts";

/** `maxWaitMs`: the time that a call waits for others; 0 for one turn of the event loop. */
export type BatchOptions = "off" | { readonly maxCalls: number; readonly maxWaitMs: number };

export interface NodeSenderOptions {
  readonly chain: string;
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly requestsPerSecond: number | undefined;
  readonly concurrency: number | undefined;
  readonly batch: BatchOptions;
  /** A call of a client that would wait longer is refused. */
  readonly maxWaitMs: number;
  readonly maxResponseBytes: number;
  readonly memory?: MemoryBudget | undefined;
  readonly breaker: Pick<BreakerOptions, "failures" | "openMs">;
  /** Whether ids, statuses and error objects of responses are checked. */
  readonly verifies: boolean;
  /** The metric label of a method, from a closed set. */
  readonly methodLabel: (method: string) => string;
  /** The units that the provider bills for a call. */
  readonly unitsOf: (method: string) => number;
  /** Called with each call to a node: whether it is of a client, and its price. */
  readonly onCall?: ((isOfClient: boolean, units: number) => void) | undefined;
  readonly health: ObservedHealth;
  /** Whether another node can answer. */
  readonly hasOther?: (() => boolean) | undefined;
  /** The node closed a connection, or none could be opened. */
  readonly onLost: () => void;
  /** Called with the error of each call. */
  readonly onError: (error: NodeError, method: string | undefined) => void;
}

const DEFAULT_CONCURRENCY = 256;
/** The pause after a rate limit without Retry-After. */
const DEFAULT_PAUSE_MS = 1000;

/** A batch is late after this time, or after a multiple of the usual duration if that is longer. */
const MIN_LATE_MS = 100;
const LATE_FACTOR = 4;
/** The same time while no duration is known. */
const FIRST_LATE_MS = 1_000;

/** One connection in 16 is left for forebay's own requests, so that heads are read while clients wait. */
const requestsOfClients = (concurrency: number): number => Math.max(1, concurrency - Math.ceil(concurrency / 16));

const lateAfterMs = (latencyMs: number): number =>
  latencyMs === 0 ? FIRST_LATE_MS : Math.max(MIN_LATE_MS, LATE_FACTOR * latencyMs);

/** Whether the node executed the call. */
const isAnswer = (outcome: NodeCallOutcome): boolean =>
  !(outcome instanceof NodeError) || (outcome.text !== undefined && outcome.kind !== "rateLimited");

/** Whether the request may hold the result until its response is written. */
const hasRoom = ({ memory }: Reach, outcome: NodeCallOutcome): boolean =>
  outcome instanceof NodeError || outcome.length <= UNCOUNTED_BYTES || memory?.hold(outcome) !== false;

/** Sends HTTP requests to one node within its budget of calls. Each outcome updates breaker, metrics and health. */
export class NodeSender {
  readonly #options: NodeSenderOptions;
  readonly #telemetry: Telemetry;
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #counts: NodeCounts;
  readonly #budget: Budget;
  readonly #breaker: Breaker;
  readonly #client: NodeClient;
  readonly #batcher: CallBatcher;
  readonly #permits: SendPermits;
  readonly #requestLimit: RequestLimit;
  #lastFault: NodeError | undefined;
  readonly #callSender: CallSender = {
    createError: (why, sent) => this.#leftError(why, sent),
    settle: (sent, outcome, why) => this.#settle(sent, outcome, why),
  };

  constructor(options: NodeSenderOptions, telemetry: Telemetry) {
    const { chain, name, concurrency = DEFAULT_CONCURRENCY, onLost } = options;
    const labels = { chain, node: name };
    const budget = createBudget(options.requestsPerSecond);
    this.#options = options;
    this.#telemetry = telemetry;
    this.#labels = labels;
    this.#counts = new NodeCounts(labels, telemetry.metrics, options);
    this.#budget = budget;
    this.#client = createNodeClient({
      name,
      url: options.url,
      ...(options.headers && { headers: options.headers }),
      concurrency,
      maxResponseBytes: options.maxResponseBytes,
      memory: options.memory,
      verifies: options.verifies,
      onRetryAfter: (seconds) => budget.pause(seconds * 1000),
      onLost,
      ...(options.hasOther && { hasOther: options.hasOther }),
      onHang: (isHung) => this.#onHang(isHung),
    });
    const requestLimit = new RequestLimit(requestsOfClients(concurrency));
    this.#requestLimit = requestLimit;
    const admission = new CallAdmission({
      get places() {
        return requestLimit.requests;
      },
      isFull: () => this.#batcher.isFull,
      inFlight: () => this.#batcher.inFlight,
      maxWaitMs: options.maxWaitMs,
      now: () => performance.now(),
    });
    this.#permits = new SendPermits({ name, budget, admission, onRefused: () => this.#counts.addRefusal() });
    this.#batcher = new CallBatcher({
      client: this.#client,
      limit: new BatchLimit(options.batch === "off" ? 1 : options.batch.maxCalls),
      get maxInFlight() {
        return requestLimit.requests;
      },
      maxWaitMs: options.batch === "off" ? 0 : options.batch.maxWaitMs,
      lateMs: () => lateAfterMs(options.health.latencyMs),
      onStart: () => this.#onStart(),
      onEnd: (end, durationMs) => this.#onEnd(end, durationMs),
      onRepeat: ({ call, reach }) => {
        budget.take(1);
        this.#counts.addCall(call.method, reach);
      },
    });
    this.#breaker = createBreaker({ ...options.breaker, onChange: (isOpen) => this.#onBreaker(isOpen) });
  }

  #onHang(isHung: boolean): void {
    const { log, metrics } = this.#telemetry;
    metrics.upstreamHung.set(this.#labels, isHung ? 1 : 0);
    log.warn(
      this.#labels,
      isHung ? "node hangs: it responds neither to requests nor to a probe" : "node responds again",
    );
    if (isHung && this.#options.hasOther?.() === true) {
      this.#batcher.failWaiting(this.#client.createError("timeout", "the node does not respond"));
    }
  }

  #onBreaker(isOpen: boolean): void {
    this.#counts.setBreaker(isOpen);
    const fields = { ...this.#labels, host: new URL(this.#options.url).host };
    if (isOpen) {
      const facts = this.#lastFault && factsOf(this.#lastFault);
      this.#telemetry.log.warn({ ...fields, ...facts }, "node is not used: it failed too often");
    } else {
      this.#telemetry.log.warn(fields, "node is used again");
    }
  }

  /** True if the breaker is not open and the node did not ask for a pause. */
  get isReady(): boolean {
    return this.#breaker.available && !this.#budget.paused;
  }

  /** True if a further call would wait, for one of the calls in flight or for the budget of calls. */
  get isFull(): boolean {
    return this.#batcher.isFull || this.#budget.delayMs > 0;
  }

  /** The breaker is open. */
  get isBroken(): boolean {
    return !this.#breaker.available;
  }

  /** Records a sign that the node has too much load. It then gets fewer requests at once. */
  recordOverload(): void {
    this.#requestLimit.recordOverload(this.#batcher.inFlight);
  }

  /** Why the node gets no requests; undefined if it does. */
  get unusedReason(): string | undefined {
    if (!this.#breaker.available) {
      return this.#lastFault === undefined
        ? "it failed too often"
        : `it failed too often: ${reasonOf(this.#lastFault)}`;
    }
    return this.#budget.paused ? "it limits the rate" : undefined;
  }

  get isHung(): boolean {
    return this.#client.isHung;
  }

  /** Sends one call when the budget allows it. */
  call(call: Call, reach: Reach, options: CallOptions = {}): Promise<Uint8Array> {
    const { span } = reach;
    return span === undefined
      ? this.#call(call, reach, options)
      : traced(span, NODE_SPAN, { "forebay.node": this.#options.name, "rpc.method": call.method }, () =>
          this.#call(call, reach, options),
        );
  }

  #call(call: Call, reach: Reach, options: CallOptions): Promise<Uint8Array> {
    const waitMs = this.#permits.request(reach);
    if (waitMs instanceof NodeError) {
      return Promise.reject(waitMs);
    }
    return waitMs <= 0
      ? this.#startCall(call, reach, options)
      : this.#permits.wait(waitMs, reach).then(() => this.#startCall(call, reach, options));
  }

  /** Sends several calls in as few HTTP requests as the node allows. Returns one outcome per call, in order. Never rejects. */
  async batch(calls: readonly Call[], reach: Reach): Promise<NodeCallOutcome[]> {
    const waitMs = this.#permits.takeBudget(calls.length, reach);
    if (waitMs instanceof NodeError) {
      return calls.map(() => waitMs);
    }
    if (waitMs > 0) {
      await this.#permits.waitForBudget(waitMs, reach);
    }
    if (isAborted(reach)) {
      return calls.map(() => this.#leftError("disconnected"));
    }
    const attributes = { "forebay.node": this.#options.name, "rpc.batch.size": calls.length };
    return calls.length === 0 ? [] : traced(reach.span, NODE_SPAN, attributes, () => this.#sendTogether(calls, reach));
  }

  #sendTogether(calls: readonly Call[], reach: Reach): Promise<NodeCallOutcome[]> {
    const { promise, resolve } = Promise.withResolvers<NodeCallOutcome[]>();
    const outcomes = new Array<NodeCallOutcome>(calls.length);
    // One listener of the client's signal, for all calls.
    const ending = new LazySignal();
    const onEnd = (): void => ending.abort(abortReason(reach));
    onAbort(reach, onEnd);
    const { signal, deadlineMs, traceHeaders } = reach;
    const shared: Reach = { signal, lazySignal: ending, deadlineMs, traceHeaders };
    let waiting = calls.length;
    const sent = calls.map((call, index) =>
      this.#createCall(call, shared, false, (outcome) => {
        outcomes[index] = outcome;
        waiting--;
        if (waiting === 0) {
          offAbort(reach, onEnd);
          resolve(outcomes);
        }
      }),
    );
    this.#batcher.sendTogether(sent);
    return promise;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #startCall(call: Call, reach: Reach, { isVerified = false, isShared = false }: CallOptions): Promise<Uint8Array> {
    if (isAborted(reach)) {
      return Promise.reject(this.#leftError("disconnected"));
    }
    this.#permits.begin(reach);
    return new Promise((resolve, reject) => {
      const sent = this.#createCall(call, reach, isVerified, (outcome) => {
        if (outcome instanceof NodeError) {
          reject(outcome);
        } else {
          resolve(outcome);
        }
      });
      if (isShared && this.#options.batch !== "off") {
        this.#batcher.add(sent);
      } else {
        this.#batcher.sendAlone(sent);
      }
    });
  }

  #createCall(call: Call, reach: Reach, isVerified: boolean, onOutcome: (outcome: NodeCallOutcome) => void): SentCall {
    this.#counts.addCall(call.method, reach);
    this.#options.health.recordStart();
    return new SentCall(this.#callSender, { call, reach, isVerified, onOutcome });
  }

  /** Creates the error of a call whose client disconnected, or whose deadline has passed. */
  #leftError(why: Leaving, sent?: SentCall): NodeError {
    if (why === "disconnected" || sent === undefined) {
      return this.#client.createError("cancelled", "the client has disconnected");
    }
    const waitedMs = Math.round(sent.reach.deadlineMs - sent.startMs);
    return this.#client.createError("timeout", `no response within ${waitedMs} ms`);
  }

  /** Called when an HTTP request is sent. */
  #onStart(): void {
    this.#counts.addRequest();
    this.#breaker.begin();
  }

  /** Called when an HTTP request ends. All its calls count as one for the breaker and the averages. */
  #onEnd(end: "response" | "fault" | "abandoned", durationMs: number): void {
    if (end === "abandoned") {
      this.#breaker.release();
      return;
    }
    if (end === "fault") {
      this.#breaker.failed();
    } else {
      this.#breaker.succeeded();
      this.#requestLimit.recordResponse();
    }
    this.#options.health.recordOutcome(durationMs, end === "fault");
  }

  #settle({ call, reach, startMs }: SentCall, outcome: NodeCallOutcome, why: Leaving | undefined): NodeCallOutcome {
    this.#options.health.recordEnd();
    this.#permits.end(reach, why === undefined && isAnswer(outcome));
    if (why !== "disconnected") {
      this.#countOutcome(call, outcome, startMs);
    }
    return hasRoom(reach, outcome) ? outcome : budgetError(this.#options.name);
  }

  #countOutcome(call: Call, outcome: NodeCallOutcome, startMs: number): void {
    const isError = outcome instanceof NodeError;
    this.#counts.addOutcome(isError ? outcome.kind : "ok", performance.now() - startMs);
    if (!isError) {
      return;
    }
    if (isFault(outcome)) {
      this.#lastFault = outcome;
    }
    if (outcome.kind === "rateLimited") {
      this.recordOverload();
      this.#budget.pause(DEFAULT_PAUSE_MS);
    }
    this.#options.onError(outcome, call.method);
  }
}
