import type { CallScope } from "../core/context.ts";
import { abortReason, isTimeout, msUntil, offAbort, onAbort } from "../core/lazySignal.ts";
import { NodeError } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { isFault } from "./errorKind.ts";
import type { HttpPost } from "./httpPost.ts";
import type { NodeEndpoint } from "./nodeEndpoint.ts";

/** The UTF-8 JSON text of a result, or the error. */
export type NodeCallOutcome = Uint8Array | NodeError;

/** Why the caller ended a call. */
export type CancelReason = "timeout" | "disconnected";

/** What calls wait for: a request to a node, or a place among those in flight. */
export interface CallCarrier {
  /** The caller ended one of its calls. */
  release(why: CancelReason): void;
}

/** Called once. A reason to cancel is the outcome of a call that its caller ended. */
type OnComplete = (call: SentCall, outcome: NodeCallOutcome | CancelReason) => void;

/**
 * One call to a node, from its start to its outcome. One carrier has it at a time: the queue, or an HTTP request.
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
  isSent = false;
  readonly #onComplete: OnComplete;
  readonly #onAbort = (): void => this.#cancel(isTimeout(abortReason(this.scope)) ? "timeout" : "disconnected");
  readonly #timer: NodeJS.Timeout | undefined;
  #carrier: CallCarrier | undefined;
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

  /** Must be called by each carrier that takes the call over. */
  attach(carrier: CallCarrier): void {
    this.#carrier = carrier;
  }

  /** Has an effect once. */
  complete(outcome: NodeCallOutcome): void {
    this.#end(outcome);
  }

  #cancel(why: CancelReason): void {
    if (!this.#isComplete) {
      this.#carrier?.release(why);
      this.#end(why);
    }
  }

  #end(outcome: NodeCallOutcome | CancelReason): void {
    if (this.#isComplete) {
      return;
    }
    this.#isComplete = true;
    clearTimeout(this.#timer);
    offAbort(this.scope, this.#onAbort);
    this.#onComplete(this, outcome);
  }
}

/** `fault` of the node; `abandoned` if all callers have disconnected. */
export type ExchangeEnd = "response" | "fault" | "abandoned";

/** The sender of exchanges. */
export interface ExchangeOwner {
  /** A batch is late, and ends. These calls have no outcome. */
  onLate(calls: readonly SentCall[], batchSize: number): void;
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
      call.isSent = true;
    }
    const [first] = calls;
    if (first !== undefined && calls.length === 1) {
      this.#post = this.#endpoint.call(first, (outcome) => this.#onOutcome(first, outcome));
      return;
    }
    if (lateMs !== undefined && lateMs < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#onLate(lateMs), lateMs);
    }
    this.#post = this.#endpoint.batch(calls, (outcomes) => this.#onOutcomes(outcomes));
  }

  release(why: CancelReason): void {
    this.#waiting--;
    if (this.#waiting === 0 && !this.#isEnded) {
      this.#abort(why === "disconnected" ? "abandoned" : "fault");
    }
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

  /** If this process was busy, the response may have arrived: it is read before the immediate runs, or as late as the timer is. */
  #onLate(lateMs: number): void {
    const delayMs = performance.now() - this.#startMs - lateMs;
    if (delayMs > lateMs / 2) {
      this.#timer = setTimeout(() => this.#onLate(lateMs + delayMs), delayMs);
      return;
    }
    setImmediate(() => {
      if (!this.#isEnded) {
        this.#owner.onLate(this.#incomplete(), this.#calls.length);
        this.#abort("abandoned");
      }
    });
  }

  #incomplete(): readonly SentCall[] {
    return this.#calls.filter(({ isComplete }) => !isComplete);
  }
}
