import { NodeError } from "../core/node.ts";
import { isFault } from "./errorKind.ts";
import type { BatchOutcomes, NodeClient } from "./nodeClient.ts";
import type { Post } from "./postJson.ts";
import type { CallCarrier, Leaving, NodeCallOutcome, SentCall } from "./sentCall.ts";

export interface ExchangeOptions {
  readonly client: Pick<NodeClient, "call" | "batch">;
  /** Time after which `onLate` is called; undefined for never. */
  readonly lateMs?: number | undefined;
  /** A batch is late. These calls still wait for it. */
  onLate?(waiting: readonly SentCall[]): void;
  /** The response to a batch lacks these calls. */
  onMissing(calls: readonly SentCall[]): void;
  /** The node answered no call of a batch. */
  onBatchError(calls: readonly SentCall[], error: NodeError): void;
  /** Called once, before the calls are settled. `fault` of the node; `abandoned` if all clients have disconnected. */
  onEnd(end: "response" | "fault" | "abandoned", durationMs: number): void;
}

/** A timer may fire this much early. */
const TIMER_SLACK_MS = 1;

/** One HTTP request to a node, with the calls that wait for its response. It has one timer, for the earliest deadline. */
export class Exchange implements CallCarrier {
  readonly #calls: readonly SentCall[];
  readonly #options: ExchangeOptions;
  readonly #startMs = performance.now();
  #post: Post | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lateAtMs: number;
  #waiting: number;
  #isEnded = false;

  constructor(calls: readonly SentCall[], options: ExchangeOptions) {
    this.#calls = calls;
    this.#options = options;
    this.#waiting = calls.length;
    this.#lateAtMs = this.#startMs + (options.lateMs ?? Number.POSITIVE_INFINITY);
  }

  /** Sends the request. Must be called once. */
  start(): void {
    for (const call of this.#calls) {
      call.attach(this);
    }
    this.#startTimer();
    const [first] = this.#calls;
    if (first !== undefined && this.#calls.length === 1) {
      const { reach, isVerified } = first;
      const { traceHeaders, maxBytes, caller } = reach;
      this.#post = this.#options.client.call(
        first.call,
        { traceHeaders, isVerified, maxBytes, clientId: caller?.clientId },
        (outcome) => this.#onOutcome(first, outcome),
      );
      return;
    }
    this.#post = this.#options.client.batch(
      this.#calls.map(({ call }) => call),
      { traceHeaders: first?.reach.traceHeaders, isVerified: this.#calls.every(({ isVerified }) => isVerified) },
      (outcomes) => this.#onOutcomes(outcomes),
    );
  }

  release(why: Leaving | undefined): void {
    this.#waiting--;
    if (this.#waiting > 0 || this.#isEnded) {
      return;
    }
    if (why === undefined) {
      // The last call got its outcome from another request. This response is still awaited, because an abort costs a connection.
      this.#startTimer();
      return;
    }
    this.#abort(why === "disconnected" ? "abandoned" : "fault");
  }

  #onOutcome(call: SentCall, outcome: NodeCallOutcome): void {
    this.#end(outcome instanceof NodeError && isFault(outcome) ? "fault" : "response");
    call.settle(outcome);
  }

  #onOutcomes(outcomes: BatchOutcomes | NodeError): void {
    if (outcomes instanceof NodeError) {
      this.#end(isFault(outcomes) ? "fault" : "response");
      this.#options.onBatchError(this.#unsettled(), outcomes);
      return;
    }
    this.#end("response");
    const missing: SentCall[] = [];
    for (let index = 0; index < this.#calls.length; index++) {
      const call = this.#calls[index];
      const outcome = outcomes[index];
      if (call !== undefined && outcome !== undefined) {
        call.settle(outcome);
      } else if (call !== undefined && !call.isSettled) {
        missing.push(call);
      }
    }
    if (missing.length > 0) {
      this.#options.onMissing(missing);
    }
  }

  #abort(end: "fault" | "abandoned"): void {
    this.#end(end);
    this.#post?.abort();
  }

  #end(end: "response" | "fault" | "abandoned"): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#options.onEnd(end, performance.now() - this.#startMs);
  }

  #unsettled(): readonly SentCall[] {
    return this.#calls.filter(({ isSettled }) => !isSettled);
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    const atMs = this.#waiting === 0 ? this.#lastDeadlineMs() : Math.min(this.#lateAtMs, this.#firstTimerMs());
    if (atMs < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#onTimer(), Math.max(0, Math.ceil(atMs - performance.now())));
    }
  }

  #firstTimerMs(): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const { isSettled, timerMs } of this.#calls) {
      if (!isSettled && timerMs < atMs) {
        atMs = timerMs;
      }
    }
    return atMs;
  }

  #lastDeadlineMs(): number {
    return Math.max(...this.#calls.map(({ reach }) => reach.deadlineMs));
  }

  #onTimer(): void {
    if (this.#waiting === 0) {
      this.#abort("fault");
      return;
    }
    const dueMs = performance.now() + TIMER_SLACK_MS;
    if (this.#lateAtMs <= dueMs) {
      this.#lateAtMs = Number.POSITIVE_INFINITY;
      // If this process was busy, the response may have arrived, and is read before the immediate runs.
      setImmediate(() => {
        if (!this.#isEnded) {
          this.#options.onLate?.(this.#unsettled());
        }
      });
    }
    for (const call of this.#calls) {
      if (!call.isSettled && call.timerMs <= dueMs) {
        call.expire();
      }
    }
    if (!this.#isEnded) {
      this.#startTimer();
    }
  }
}
