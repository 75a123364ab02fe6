import type { NodeError } from "../core/node.ts";
import { admit, CallQueue, isOwn } from "./callQueue.ts";
import { Exchange, type ExchangeEnd, type ExchangeOwner, type SentCall } from "./exchange.ts";
import type { NodeEndpoint } from "./nodeEndpoint.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import type { NodeState } from "./nodeState.ts";
import { type BatchLimit, type CallRate, isBatchRefusal, type RequestLimit } from "./sendLimits.ts";

/** The parts of one node that its HTTP requests change. */
export interface BatcherParts {
  readonly endpoint: Pick<NodeEndpoint, "call" | "batch">;
  readonly state: Pick<NodeState, "begin" | "ended" | "pauseMs">;
  readonly rate: CallRate;
  readonly health: NodeHealth;
  /** HTTP requests in flight. Above it, the calls of clients wait. */
  readonly requestLimit: RequestLimit;
  readonly batchLimit: BatchLimit;
  /** Calls of clients that may wait. */
  readonly maxWaiting: number;
  /** Called for a call that has no room, instead of being sent. */
  readonly onRefused: (call: SentCall) => void;
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
 * are in flight. A batch that the node refuses is sent again in smaller parts. A call that the response lacks is sent again singly.
 * A late batch is ended, and each of its calls sent singly.
 * Calls wait here to their own deadline, for the end of a pause or the rate of the node. Those of clients also wait for a place among
 * the requests in flight.
 */
export class CallBatcher implements ExchangeOwner {
  readonly #parts: BatcherParts;
  readonly #queue: CallQueue;
  #turn: SentCall[] = [];
  #inFlight = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: BatcherParts) {
    this.#parts = parts;
    this.#queue = new CallQueue(parts.maxWaiting);
  }

  /** HTTP requests in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether a further call of a client waits. */
  get isFull(): boolean {
    return !this.#hasPlace || this.#queue.size > 0 || this.#delayMs > 0;
  }

  /** Sends the call together with others. */
  add(call: SentCall): void {
    this.#turn.push(call);
    if (this.#turn.length > 1) {
      return;
    }
    setImmediate(this.#inFlight >= BUSY_REQUESTS ? this.#flushNext : this.#flush);
  }

  sendAlone(call: SentCall): void {
    this.#startOrWait([call], false);
  }

  /** Ends the waiting calls that another node can answer. */
  failWaiting(error: NodeError): void {
    this.#endWaiting(({ call }) => call.write !== true, error);
  }

  /** Ends the waiting calls whose first retry this is. */
  moveWaiting(error: NodeError): void {
    this.#endWaiting(({ scope }) => scope.isMovable === true, error);
  }

  /** Sends these calls of forebay's own in as few HTTP requests as the node allows. They are sent even while the node is full. */
  sendTogether(calls: readonly SentCall[]): void {
    for (const chunk of this.#chunks(calls)) {
      if (this.#delayMs > 0) {
        this.#queue.addOwn(chunk, false);
        this.#wakeLater();
      } else {
        this.#start(chunk);
      }
    }
  }

  /** Ends the waiting calls: none of them is sent any more. */
  close(error: NodeError): void {
    clearTimeout(this.#timer);
    this.#endWaiting(() => true, error);
  }

  #endWaiting(accepts: (call: SentCall) => boolean, error: NodeError): void {
    for (const call of this.#queue.takeAll(accepts)) {
      call.complete(error);
    }
  }

  readonly #flushNext = (): void => {
    setImmediate(this.#flush);
  };

  readonly #flush = (): void => {
    const turn = this.#turn;
    this.#turn = [];
    const [first] = turn;
    if (turn.length === 1 && first !== undefined) {
      if (!first.isComplete) {
        this.#startOrWait(turn, true);
      }
      return;
    }
    // An HTTP request has one trace id.
    const waiting = turn.filter(({ isComplete }) => !isComplete);
    const byTrace = Map.groupBy(waiting, ({ scope }) => scope.traceHeaders?.traceparent);
    for (const calls of byTrace.values()) {
      for (const chunk of this.#chunks(calls)) {
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
    if (this.#queue.size > 0) {
      setImmediate(this.#startWaiting);
    }
  }

  onLate(calls: readonly SentCall[], batchSize: number): void {
    this.#parts.batchLimit.recordLate(batchSize);
    for (const call of calls) {
      this.#startOrWait([call], false);
    }
  }

  /** Sends the calls again, singly. */
  onMissing(calls: readonly SentCall[]): void {
    for (const call of calls) {
      this.#start([call]);
    }
  }

  onBatchError(calls: readonly SentCall[], error: NodeError, batchSize: number): void {
    const { batchLimit } = this.#parts;
    if (isBatchRefusal(error)) {
      batchLimit.recordRefusal(batchSize, error);
      for (const chunk of this.#chunks(calls)) {
        this.#send(chunk);
      }
      return;
    }
    if (error.kind === "rateLimited") {
      batchLimit.recordLate(batchSize);
    } else {
      batchLimit.recordFailure();
    }
    for (const call of calls) {
      call.complete(error);
    }
  }

  get #hasPlace(): boolean {
    return this.#inFlight < this.#parts.requestLimit.requests;
  }

  /** The time until the node may get one call. */
  get #delayMs(): number {
    const { state, rate } = this.#parts;
    return Math.max(state.pauseMs, rate.waitMs);
  }

  #chunks(calls: readonly SentCall[]): (readonly SentCall[])[] {
    return calls.length === 0 ? [] : chunks(calls, this.#parts.batchLimit.calls);
  }

  #startOrWait(calls: readonly SentCall[], isShared: boolean): void {
    if (!this.isFull && this.#parts.rate.calls >= calls.length) {
      for (const call of calls) {
        admit(call);
      }
      this.#start(calls, lateAfterMs(this.#parts.health.latencyMs));
      return;
    }
    for (const call of calls) {
      if (isOwn(call) && this.#delayMs <= 0) {
        this.#start([call]);
      } else if (isOwn(call)) {
        this.#queue.addOwnCall(call, isShared);
      } else {
        const refused = this.#queue.add(call, isShared);
        if (refused !== undefined) {
          this.#parts.onRefused(refused);
        }
      }
    }
    this.#startWaiting();
  }

  /** Sends waiting calls while the node may get more. */
  readonly #startWaiting = (): void => {
    const { batchLimit, rate, health } = this.#parts;
    while (this.#queue.size > 0) {
      if (this.#delayMs > 0) {
        this.#wakeLater();
        return;
      }
      const calls = this.#queue.take(Math.min(batchLimit.calls, rate.calls), this.#hasPlace);
      if (calls.length === 0) {
        return;
      }
      this.#start(calls, calls.every(isOwn) ? undefined : lateAfterMs(health.latencyMs));
    }
  };

  #wakeLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#startWaiting, this.#delayMs).unref();
  }

  /** Sends the calls in one HTTP request, and counts them. */
  #start(calls: readonly SentCall[], lateMs?: number): void {
    const { rate, health } = this.#parts;
    rate.spend(calls.length);
    for (const { call, scope } of calls) {
      health.countCall(call.method, scope);
    }
    this.#send(calls, lateMs);
  }

  #send(calls: readonly SentCall[], lateMs?: number): void {
    const { endpoint, state } = this.#parts;
    this.#inFlight++;
    state.begin();
    new Exchange(calls, endpoint, this).start(lateMs);
  }
}
