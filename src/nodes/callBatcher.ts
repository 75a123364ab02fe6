import type { NodeError } from "../core/node.ts";
import { FairQueue, ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import { type CallCarrier, Exchange, type ExchangeEnd, type ExchangeOwner, type SentCall } from "./exchange.ts";
import type { NodeEndpoint } from "./nodeEndpoint.ts";
import type { Breaker } from "./nodeFailures.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import { type BatchLimit, type CallBudget, isBatchRefusal, type RequestLimit } from "./sendLimits.ts";

const FOREBAY = { clientId: "" };

/** A call of a client that waits until the node may get one more request. */
class WaitingCall implements CallCarrier {
  readonly call: SentCall;
  readonly isShared: boolean;
  readonly owner: QueueOwner;
  readonly #queue: FairQueue<WaitingCall>;

  constructor(call: SentCall, isShared: boolean, queue: FairQueue<WaitingCall>) {
    this.call = call;
    this.isShared = isShared;
    this.owner = ownerOf(call.scope.caller ?? FOREBAY);
    this.#queue = queue;
    call.attach(this);
    queue.add(this.owner, this);
  }

  /** Its caller disconnected, or its deadline passed. */
  release(): void {
    this.#queue.remove(this.owner, this);
  }

  /** Must be called before the call is sent. */
  end(): SentCall {
    this.call.detach(this);
    return this.call;
  }
}

/** The calls of clients that wait for a node with all its requests in flight. Clients take turns, and then their connections. */
class WaitingCalls {
  readonly #queue = new FairQueue<WaitingCall>();

  get size(): number {
    return this.#queue.size;
  }

  /** `isShared`: the call may share an HTTP request with others. */
  add(call: SentCall, isShared: boolean): void {
    new WaitingCall(call, isShared, this.#queue);
  }

  /** Takes the calls of the next HTTP request: those of the next turns, as long as they may share it. */
  take(maxCalls: number): readonly SentCall[] {
    const first = this.#queue.take();
    if (first === undefined) {
      return [];
    }
    const calls = [first.end()];
    const canShare = (next: WaitingCall | undefined): boolean =>
      first.isShared &&
      next?.isShared === true &&
      next.call.scope.traceHeaders?.traceparent === first.call.scope.traceHeaders?.traceparent;
    while (calls.length < maxCalls && canShare(this.#queue.peek())) {
      const next = this.#queue.take();
      if (next !== undefined) {
        calls.push(next.end());
      }
    }
    return calls;
  }

  /** Takes all calls that another node can answer. */
  takeReads(): readonly SentCall[] {
    const reads: SentCall[] = [];
    const takeRead = (): WaitingCall | undefined => this.#queue.take(({ call }) => call.call.write !== true);
    for (let next = takeRead(); next !== undefined; next = takeRead()) {
      reads.push(next.end());
    }
    return reads;
  }
}

/** The parts of one node that its HTTP requests change. */
export interface BatcherParts {
  readonly endpoint: Pick<NodeEndpoint, "call" | "batch">;
  readonly breaker: Breaker;
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
  /** Time that a call waits for others. 0: see BUSY_REQUESTS. */
  readonly #maxWaitMs: number;
  #queue: SentCall[] = [];
  readonly #waiting = new WaitingCalls();
  #inFlight = 0;

  constructor(parts: BatcherParts, maxWaitMs: number) {
    this.#parts = parts;
    this.#maxWaitMs = maxWaitMs;
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
    if (this.#maxWaitMs === 0) {
      setImmediate(this.#inFlight >= BUSY_REQUESTS ? this.#flushNext : this.#flush);
    } else {
      setTimeout(this.#flush, this.#maxWaitMs);
    }
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

  /** `fault`: the node's. All calls of an HTTP request count as one for the breaker and the averages. */
  onEnd(end: ExchangeEnd, durationMs: number): void {
    const { breaker, requestLimit, health } = this.#parts;
    this.#inFlight--;
    if (end === "abandoned") {
      breaker.release();
    } else {
      if (end === "fault") {
        breaker.failed();
      } else {
        breaker.succeeded();
        requestLimit.recordResponse();
      }
      health.recordRequest(durationMs, end === "fault");
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
    const { endpoint, health, breaker } = this.#parts;
    this.#inFlight++;
    health.countRequest();
    breaker.begin();
    new Exchange(calls, endpoint, this).start(lateMs);
  }
}
