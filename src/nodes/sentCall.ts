import { abortReason, offAbort, onAbort } from "../core/lazySignal.ts";
import type { NodeError, Reach } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";

const TIMEOUT_STATUS = 504;

/** The UTF-8 JSON text of a result, or the error. */
export type CallOutcome = Uint8Array | NodeError;

/** The way in which the client of a call ended it. */
export type Leaving = "timeout" | "disconnected";

/** A request to a node that calls wait for. */
export interface CallCarrier {
  /** Records that one of its calls has its outcome. */
  release(why: Leaving | undefined): void;
}

export interface SentCallOptions {
  readonly call: Call;
  readonly reach: Reach;
  /** The caller rejects a result that is not one JSON value. */
  readonly isVerified: boolean;
  /** Creates the error of a call whose client ended it. */
  createError(why: Leaving, sent: SentCall): NodeError;
  /** Called once. `why` is undefined if the node decided the outcome. */
  onSettled(sent: SentCall, outcome: CallOutcome, why: Leaving | undefined): void;
}

/** One call to a node, from its start to its outcome. It travels in one HTTP request, and in a second one if that is slow. */
export class SentCall {
  readonly call: Call;
  readonly reach: Reach;
  readonly isVerified: boolean;
  readonly startMs = performance.now();
  readonly #options: SentCallOptions;
  readonly #onAbort = (): void => this.#leave(isTimeout(this.reach) ? "timeout" : "disconnected");
  #first: CallCarrier | undefined;
  #second: CallCarrier | undefined;
  #isSettled = false;

  constructor(options: SentCallOptions) {
    this.call = options.call;
    this.reach = options.reach;
    this.isVerified = options.isVerified;
    this.#options = options;
    onAbort(options.reach, this.#onAbort);
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The time at which its carrier must end it; `Infinity` if its client's own timer does that. */
  get timerMs(): number {
    const { deadlineMs, lazySignal } = this.reach;
    return lazySignal !== undefined && lazySignal.deadlineMs <= deadlineMs ? Number.POSITIVE_INFINITY : deadlineMs;
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
  settle(outcome: CallOutcome, why?: Leaving): void {
    if (this.#isSettled) {
      return;
    }
    this.#isSettled = true;
    offAbort(this.reach, this.#onAbort);
    this.#first?.release(why);
    this.#second?.release(why);
    this.#options.onSettled(this, outcome, why);
  }

  /** Ends the call at its deadline. */
  expire(): void {
    this.#leave("timeout");
  }

  #leave(why: Leaving): void {
    if (!this.#isSettled) {
      this.settle(this.#options.createError(why, this), why);
    }
  }
}

const isTimeout = (reach: Reach): boolean => {
  const reason = abortReason(reach);
  return reason instanceof RpcError && reason.status === TIMEOUT_STATUS;
};
