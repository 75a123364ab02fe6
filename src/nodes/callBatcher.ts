import type { NodeError, NodeErrorKind } from "../core/node.ts";
import type { CallBudget, RequestLimit } from "./callAdmission.ts";
import { isFault } from "./errorKind.ts";
import { Exchange, type ExchangeEnd, type ExchangeOwner, type SentCall, WaitingCalls } from "./exchange.ts";
import type { NodeEndpoint } from "./nodeEndpoint.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import type { NodeState } from "./nodeState.ts";

/** A refusal is forgotten after this time, because only one machine of several may have refused. */
const REFUSED_MS = 600_000;
/** The calls of a node that was slow are spread over more requests for this time. */
const LATE_MS = 60_000;
/** After a batch without a response, the node gets single calls for this time: one call may have caused the failure. */
const FAILED_MS = 1_000;

const NO_BATCHES = /batch.*(not (supported|allowed|enabled|available)|unsupported|disabled|forbidden)/i;

/** The errors of a node that refuses its user, or that has ended the request. */
const NO_REFUSALS: ReadonlySet<NodeErrorKind> = new Set(["rateLimited", "billing", "unauthorized", "cancelled"]);

/** Whether the node rejected the batch as such. A node that is down, slow, or rejects its user did not. */
export const isBatchRefusal = (error: NodeError): boolean => {
  const { kind } = error;
  return !NO_REFUSALS.has(kind) && (kind === "invalidAnswer" || !isFault(error));
};

/** The number of calls that one node accepts in one HTTP request: at most the configured number, and what was learned. */
export class BatchLimit {
  readonly #maxCalls: number;
  readonly #nowMs: () => number;
  #learned = Number.POSITIVE_INFINITY;
  #learnedUntilMs = 0;
  #singleUntilMs = 0;

  constructor(maxCalls: number, nowMs: () => number = () => performance.now()) {
    this.#maxCalls = maxCalls;
    this.#nowMs = nowMs;
  }

  /** At least 1. */
  get calls(): number {
    const nowMs = this.#nowMs();
    if (nowMs < this.#singleUntilMs) {
      return 1;
    }
    return nowMs < this.#learnedUntilMs ? Math.min(this.#learned, this.#maxCalls) : this.#maxCalls;
  }

  /** Records that the node refused a batch of this size. */
  recordRefusal(size: number, { message }: NodeError): void {
    this.#learn(NO_BATCHES.test(message) ? 1 : size >> 1, REFUSED_MS);
  }

  /** Records that one call made a batch of this size slow. */
  recordLate(size: number): void {
    this.#learn(size >> 1, LATE_MS);
  }

  /** Records that a batch got no response. */
  recordFailure(): void {
    this.#singleUntilMs = this.#nowMs() + FAILED_MS;
  }

  #learn(calls: number, forMs: number): void {
    const nowMs = this.#nowMs();
    const current = nowMs < this.#learnedUntilMs ? this.#learned : Number.POSITIVE_INFINITY;
    this.#learned = Math.max(1, Math.min(current, calls));
    this.#learnedUntilMs = Math.max(this.#learnedUntilMs, nowMs + forMs);
  }
}

/** The parts of one node that its HTTP requests change. */
export interface BatcherParts {
  readonly endpoint: Pick<NodeEndpoint, "call" | "batch">;
  readonly state: Pick<NodeState, "begin" | "ended">;
  readonly budget: CallBudget;
  readonly health: NodeHealth;
  /** HTTP requests in flight. Above it, the calls of clients wait. */
  readonly requestLimit: RequestLimit;
  readonly batchLimit: BatchLimit;
}

/** A batch is late after this time, or after a multiple of the usual duration if that is longer. */
const MIN_LATE_MS = 100;
const LATE_FACTOR = 4;
/** The same time while no duration is known. */
const FIRST_LATE_MS = 1_000;

const lateAfterMs = (latencyMs: number): number =>
  latencyMs === 0 ? FIRST_LATE_MS : Math.max(MIN_LATE_MS, LATE_FACTOR * latencyMs);

/**
 * With this number of HTTP requests in flight, the calls of two turns of the event loop share one.
 * An HTTP request costs more CPU than a call in it. The second turn waits for no event.
 */
const BUSY_REQUESTS = 2;

/** Splits calls into chunks of nearly equal size, of at most `size` calls. */
const chunks = (calls: readonly SentCall[], size: number): (readonly SentCall[])[] => {
  const count = Math.ceil(calls.length / size);
  const length = Math.ceil(calls.length / count);
  return Array.from({ length: count }, (_, index) => calls.slice(index * length, (index + 1) * length));
};

/**
 * Sends the calls to one node. Calls of one turn of the event loop share HTTP requests, and those of two turns while requests
 * are in flight. A batch that the node refuses is sent again in smaller parts. A call that the response lacks, and each
 * call of a late batch, is sent again singly.
 * If the node has all its requests in flight, calls of clients wait, and clients take turns. Calls of forebay itself never wait.
 */
export class CallBatcher implements ExchangeOwner {
  readonly #parts: BatcherParts;
  #queue: SentCall[] = [];
  readonly #waiting = new WaitingCalls();
  #inFlight = 0;

  constructor(parts: BatcherParts) {
    this.#parts = parts;
  }

  /** HTTP requests in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether a further call of a client waits. */
  get isFull(): boolean {
    return this.#inFlight >= this.#parts.requestLimit.requests || this.#waiting.size > 0;
  }

  /** Sends the call together with others. */
  add(call: SentCall): void {
    this.#queue.push(call);
    if (this.#queue.length > 1) {
      return;
    }
    setImmediate(this.#inFlight >= BUSY_REQUESTS ? this.#flushNext : this.#flush);
  }

  sendAlone(call: SentCall): void {
    this.#startOrWait([call], false);
  }

  /** Ends the waiting calls that another node can answer. */
  failWaiting(error: NodeError): void {
    for (const call of this.#waiting.takeReads()) {
      call.complete(error);
    }
  }

  /** Sends these calls at once, in as few HTTP requests as the node allows. */
  sendTogether(calls: readonly SentCall[]): void {
    for (const chunk of calls.length > 0 ? chunks(calls, this.#parts.batchLimit.calls) : []) {
      this.#start(chunk);
    }
  }

  readonly #flushNext = (): void => {
    setImmediate(this.#flush);
  };

  readonly #flush = (): void => {
    const queue = this.#queue;
    this.#queue = [];
    const [first] = queue;
    if (queue.length === 1 && first !== undefined) {
      if (!first.isComplete) {
        this.#startOrWait(queue, true);
      }
      return;
    }
    // An HTTP request has one trace id.
    const waiting = queue.filter(({ isComplete }) => !isComplete);
    const byTrace = Map.groupBy(waiting, ({ scope }) => scope.traceHeaders?.traceparent);
    for (const calls of byTrace.values()) {
      for (const chunk of chunks(calls, this.#parts.batchLimit.calls)) {
        this.#startOrWait(chunk, true);
      }
    }
  };

  /** `fault`: the node's. All calls of an HTTP request count as one for the state and the averages. */
  onEnd(end: ExchangeEnd, startMs: number, isHeadRead: boolean): void {
    const { state, requestLimit, health } = this.#parts;
    this.#inFlight--;
    state.ended(end, startMs, isHeadRead);
    if (end !== "abandoned") {
      health.recordRequest(performance.now() - startMs, end === "fault");
    }
    if (end === "response") {
      requestLimit.recordResponse();
    }
    if (this.#waiting.size > 0) {
      setImmediate(() => this.#startWaiting());
    }
  }

  onLate(waiting: readonly SentCall[], batchSize: number): void {
    this.#parts.batchLimit.recordLate(batchSize);
    this.onMissing(waiting);
  }

  /** Sends the calls again, singly. */
  onMissing(calls: readonly SentCall[]): void {
    const { budget, health } = this.#parts;
    for (const call of calls) {
      budget.take(1);
      health.countCall(call.call.method, call.scope);
      this.#start([call]);
    }
  }

  onBatchError(calls: readonly SentCall[], error: NodeError, batchSize: number): void {
    const { batchLimit } = this.#parts;
    if (isBatchRefusal(error)) {
      batchLimit.recordRefusal(batchSize, error);
      this.sendTogether(calls);
      return;
    }
    batchLimit.recordFailure();
    for (const call of calls) {
      call.complete(error);
    }
  }

  #startOrWait(calls: readonly SentCall[], isShared: boolean): void {
    if (!this.isFull) {
      this.#start(calls, lateAfterMs(this.#parts.health.latencyMs));
      return;
    }
    for (const call of calls) {
      if (call.scope.caller?.connection === undefined) {
        this.#start([call]);
      } else {
        this.#waiting.add(call, isShared);
      }
    }
  }

  /** Sends waiting calls while the node may get more requests. */
  #startWaiting(): void {
    const { batchLimit, requestLimit, health } = this.#parts;
    while (this.#waiting.size > 0 && this.#inFlight < requestLimit.requests) {
      this.#start(this.#waiting.take(batchLimit.calls), lateAfterMs(health.latencyMs));
    }
  }

  #start(calls: readonly SentCall[], lateMs?: number): void {
    const { endpoint, state } = this.#parts;
    this.#inFlight++;
    state.begin();
    new Exchange(calls, endpoint, this).start(lateMs);
  }
}
