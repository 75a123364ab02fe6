import type { CallScope } from "../core/context.ts";
import { abortReason, isTimeout, msUntil, offAbort, onAbort } from "../core/lazySignal.ts";
import { NodeError } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { FairQueue, ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import { isFault } from "./errorKind.ts";
import type { HttpPost } from "./httpPost.ts";
import type { NodeEndpoint } from "./nodeEndpoint.ts";

/** The UTF-8 JSON text of a result, or the error. */
export type NodeCallOutcome = Uint8Array | NodeError;

/** Why the caller ended a call. */
export type CancelReason = "timeout" | "disconnected";

/** What calls wait for: a request to a node, or a place among those in flight. */
interface CallCarrier {
  /** Records that one of its calls has its outcome. */
  release(why: CancelReason | undefined): void;
}

/** Called once. A reason to cancel is the outcome of a call that its caller ended. */
type OnComplete = (call: SentCall, outcome: NodeCallOutcome | CancelReason) => void;

/**
 * One call to a node, from its start to its outcome. It travels in one HTTP request, and in a second one if that is slow.
 * It ends at its deadline, by a timer of its own unless the owner of its signal ends it then.
 */
export class SentCall {
  readonly call: Call;
  readonly scope: CallScope;
  /** The caller rejects a result that is not one JSON value. */
  readonly isCheckedLater: boolean;
  readonly startMs = performance.now();
  /** When the HTTP request that it is in was sent. */
  sentMs = this.startMs;
  readonly #onComplete: OnComplete;
  readonly #onAbort = (): void => this.#cancel(isTimeout(abortReason(this.scope)) ? "timeout" : "disconnected");
  readonly #timer: NodeJS.Timeout | undefined;
  #first: CallCarrier | undefined;
  #second: CallCarrier | undefined;
  #isComplete = false;

  constructor(call: Call, scope: CallScope, isCheckedLater: boolean, onComplete: OnComplete) {
    const { deadlineMs, lazySignal } = scope;
    this.call = call;
    this.scope = scope;
    this.isCheckedLater = isCheckedLater;
    this.#onComplete = onComplete;
    onAbort(scope, this.#onAbort);
    if (deadlineMs < (lazySignal?.deadlineMs ?? Number.POSITIVE_INFINITY)) {
      this.#timer = setTimeout(() => this.#cancel("timeout"), msUntil(deadlineMs));
    }
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Must be called by each carrier, before its request is sent. */
  attach(carrier: CallCarrier): void {
    if (this.#first === undefined) {
      this.#first = carrier;
    } else {
      this.#second = carrier;
    }
  }

  /** Undoes `attach`. */
  detach(carrier: CallCarrier): void {
    if (this.#first === carrier) {
      this.#first = undefined;
    }
  }

  /** Has an effect once. */
  complete(outcome: NodeCallOutcome): void {
    this.#end(outcome, undefined);
  }

  #cancel(why: CancelReason): void {
    this.#end(why, why);
  }

  #end(outcome: NodeCallOutcome | CancelReason, why: CancelReason | undefined): void {
    if (this.#isComplete) {
      return;
    }
    this.#isComplete = true;
    clearTimeout(this.#timer);
    offAbort(this.scope, this.#onAbort);
    this.#first?.release(why);
    this.#second?.release(why);
    this.#onComplete(this, outcome);
  }
}

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
export class WaitingCalls {
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

/** `fault` of the node; `abandoned` if all callers have disconnected. */
export type ExchangeEnd = "response" | "fault" | "abandoned";

/** The sender of exchanges. */
export interface ExchangeOwner {
  /** A batch is late. These calls still wait for it. */
  onLate(waiting: readonly SentCall[], batchSize: number): void;
  /** The response to a batch lacks these calls. */
  onMissing(calls: readonly SentCall[]): void;
  /** The node answered no call of a batch. */
  onBatchError(calls: readonly SentCall[], error: NodeError, batchSize: number): void;
  /** Called once, before the calls are completed. */
  onEnd(end: ExchangeEnd, startMs: number, isHeadRead: boolean): void;
}

/** One HTTP request to a node, with the calls that wait for its response. Each call ends at its own deadline. */
export class Exchange implements CallCarrier {
  readonly #calls: readonly SentCall[];
  readonly #owner: ExchangeOwner;
  readonly #endpoint: Pick<NodeEndpoint, "call" | "batch">;
  readonly #startMs = performance.now();
  #post: Pick<HttpPost, "abort"> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #waiting: number;
  #isEnded = false;

  constructor(calls: readonly SentCall[], endpoint: Pick<NodeEndpoint, "call" | "batch">, owner: ExchangeOwner) {
    this.#calls = calls;
    this.#owner = owner;
    this.#endpoint = endpoint;
    this.#waiting = calls.length;
  }

  /** Sends the request. Must be called once. `lateMs`: the time after which a batch is late; undefined for never. */
  start(lateMs?: number): void {
    const calls = this.#calls;
    for (const call of calls) {
      call.attach(this);
      call.sentMs = this.#startMs;
    }
    const [first] = calls;
    if (first !== undefined && calls.length === 1) {
      this.#post = this.#endpoint.call(first, (outcome) => this.#onOutcome(first, outcome));
      return;
    }
    if (lateMs !== undefined && lateMs < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#onLate(), lateMs);
    }
    this.#post = this.#endpoint.batch(calls, (outcomes) => this.#onOutcomes(outcomes));
  }

  release(why: CancelReason | undefined): void {
    this.#waiting--;
    if (this.#waiting > 0 || this.#isEnded) {
      return;
    }
    if (why === undefined) {
      // The last call got its outcome from another request. This response is still awaited, because an abort costs a connection.
      this.#abortAtDeadline();
      return;
    }
    this.#abort(why === "disconnected" ? "abandoned" : "fault");
  }

  #onOutcome(call: SentCall, outcome: NodeCallOutcome): void {
    this.#end(outcome instanceof NodeError && isFault(outcome) ? "fault" : "response");
    call.complete(outcome);
  }

  #onOutcomes(outcomes: readonly (NodeCallOutcome | undefined)[] | NodeError): void {
    if (outcomes instanceof NodeError) {
      this.#end(isFault(outcomes) ? "fault" : "response");
      this.#owner.onBatchError(this.#incomplete(), outcomes, this.#calls.length);
      return;
    }
    this.#end("response");
    const missing: SentCall[] = [];
    for (let index = 0; index < this.#calls.length; index++) {
      const call = this.#calls[index];
      const outcome = outcomes[index];
      if (call !== undefined && outcome !== undefined) {
        call.complete(outcome);
      } else if (call !== undefined && !call.isComplete) {
        missing.push(call);
      }
    }
    if (missing.length > 0) {
      this.#owner.onMissing(missing);
    }
  }

  #abort(end: ExchangeEnd): void {
    this.#end(end);
    this.#post?.abort();
  }

  #end(end: ExchangeEnd): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#owner.onEnd(end, this.#startMs, this.#calls[0]?.scope.isHeadRead === true);
  }

  #abortAtDeadline(): void {
    clearTimeout(this.#timer);
    const lastDeadlineMs = Math.max(...this.#calls.map(({ scope }) => scope.deadlineMs));
    if (lastDeadlineMs < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#abort("fault"), msUntil(lastDeadlineMs));
    }
  }

  #onLate(): void {
    // If this process was busy, the response may have arrived, and is read before the immediate runs.
    setImmediate(() => {
      if (!this.#isEnded) {
        this.#owner.onLate(this.#incomplete(), this.#calls.length);
      }
    });
  }

  #incomplete(): readonly SentCall[] {
    return this.#calls.filter(({ isComplete }) => !isComplete);
  }
}
