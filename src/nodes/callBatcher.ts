import type { NodeError } from "../core/node.ts";
import { FairQueue, ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import { type BatchLimit, isBatchRefusal } from "./batchLimit.ts";
import { Exchange, type ExchangeOptions } from "./exchange.ts";
import type { CallCarrier, SentCall } from "./sentCall.ts";

const FOREBAY = { clientId: "" };

/** A call of a client that waits until the node may get one more request. It ends at its deadline. */
class WaitingCall implements CallCarrier {
  readonly call: SentCall;
  readonly isShared: boolean;
  readonly owner: QueueOwner;
  readonly #onSettled: (waiting: WaitingCall) => void;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(call: SentCall, isShared: boolean, onSettled: (waiting: WaitingCall) => void) {
    this.call = call;
    this.isShared = isShared;
    this.owner = ownerOf(call.reach.caller ?? FOREBAY);
    this.#onSettled = onSettled;
    const { timerMs } = call;
    if (timerMs < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => call.expire(), Math.max(0, Math.ceil(timerMs - performance.now())));
    }
    call.attach(this);
  }

  /** Its client disconnected, or its deadline passed. */
  release(): void {
    clearTimeout(this.#timer);
    this.#onSettled(this);
  }

  /** Must be called before the call is sent. */
  end(): SentCall {
    clearTimeout(this.#timer);
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
    const waiting = new WaitingCall(call, isShared, () => this.#queue.remove(waiting.owner, waiting));
    this.#queue.add(waiting.owner, waiting);
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
      next.call.reach.traceHeaders?.traceparent === first.call.reach.traceHeaders?.traceparent;
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

export interface CallBatcherOptions extends Pick<ExchangeOptions, "client" | "onEnd"> {
  readonly limit: BatchLimit;
  /** HTTP requests in flight. Above it, the calls of clients wait. */
  readonly maxInFlight: number;
  /** Time that a call waits for others. 0: see BUSY_REQUESTS. */
  readonly maxWaitMs: number;
  /** Time after which the calls of a batch without a response are also sent singly. */
  readonly lateMs: () => number;
  /** Called before each HTTP request. */
  onStart(): void;
  /** Called before a call is sent again, singly. */
  onRepeat(call: SentCall): void;
}

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
export class CallBatcher {
  readonly #options: CallBatcherOptions;
  #queue: SentCall[] = [];
  readonly #waiting = new WaitingCalls();
  #inFlight = 0;

  constructor(options: CallBatcherOptions) {
    this.#options = options;
  }

  /** HTTP requests in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether a further call of a client waits. */
  get isFull(): boolean {
    return this.#inFlight >= this.#options.maxInFlight || this.#waiting.size > 0;
  }

  /** Sends the call together with others. */
  add(call: SentCall): void {
    this.#queue.push(call);
    if (this.#queue.length > 1) {
      return;
    }
    const { maxWaitMs } = this.#options;
    if (maxWaitMs === 0) {
      setImmediate(this.#inFlight >= BUSY_REQUESTS ? this.#flushNext : this.#flush);
    } else {
      setTimeout(this.#flush, maxWaitMs);
    }
  }

  sendAlone(call: SentCall): void {
    this.#startOrWait([call], false);
  }

  /** Ends the waiting calls that another node can answer. */
  failWaiting(error: NodeError): void {
    for (const call of this.#waiting.takeReads()) {
      call.settle(error);
    }
  }

  /** Sends these calls at once, in as few HTTP requests as the node allows. */
  sendTogether(calls: readonly SentCall[]): void {
    for (const chunk of calls.length > 0 ? chunks(calls, this.#options.limit.calls) : []) {
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
      if (!first.isSettled) {
        this.#startOrWait(queue, true);
      }
      return;
    }
    // An HTTP request has one trace id.
    const waiting = queue.filter(({ isSettled }) => !isSettled);
    const byTrace = Map.groupBy(waiting, ({ reach }) => reach.traceHeaders?.traceparent);
    for (const calls of byTrace.values()) {
      for (const chunk of chunks(calls, this.#options.limit.calls)) {
        this.#startOrWait(chunk, true);
      }
    }
  };

  #startOrWait(calls: readonly SentCall[], isShared: boolean): void {
    if (!this.isFull) {
      this.#start(calls, this.#options.lateMs());
      return;
    }
    for (const call of calls) {
      if (call.reach.caller?.connection === undefined) {
        this.#start([call]);
      } else {
        this.#waiting.add(call, isShared);
      }
    }
  }

  /** Sends waiting calls while the node may get more requests. */
  #startWaiting(): void {
    const { limit, maxInFlight, lateMs } = this.#options;
    while (this.#waiting.size > 0 && this.#inFlight < maxInFlight) {
      this.#start(this.#waiting.take(limit.calls), lateMs());
    }
  }

  #start(calls: readonly SentCall[], lateMs?: number): void {
    const { client, onStart, onEnd } = this.#options;
    this.#inFlight++;
    onStart();
    new Exchange(calls, {
      client,
      onEnd: (end, durationMs) => {
        this.#inFlight--;
        onEnd(end, durationMs);
        if (this.#waiting.size > 0) {
          setImmediate(() => this.#startWaiting());
        }
      },
      lateMs: calls.length === 1 ? undefined : lateMs,
      onLate: (waiting) => {
        this.#options.limit.recordLate(calls.length);
        this.#repeat(waiting);
      },
      onMissing: (missing) => this.#repeat(missing),
      onBatchError: (waiting, error) => this.#onBatchError(waiting, error, calls.length),
    }).start();
  }

  #repeat(calls: readonly SentCall[]): void {
    for (const call of calls) {
      this.#options.onRepeat(call);
      this.#start([call]);
    }
  }

  #onBatchError(calls: readonly SentCall[], error: NodeError, size: number): void {
    const { limit } = this.#options;
    if (isBatchRefusal(error)) {
      limit.recordRefusal(size, error);
      this.sendTogether(calls);
      return;
    }
    limit.recordFailure();
    for (const call of calls) {
      call.settle(error);
    }
  }
}
