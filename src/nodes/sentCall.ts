import { abortReason, offAbort, onAbort } from "../core/lazySignal.ts";
import type { NodeError, Reach } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";

const TIMEOUT_STATUS = 504;

/** The UTF-8 JSON text of a result, or the error. */
export type NodeCallOutcome = Uint8Array | NodeError;

/** The way in which the client of a call ended it. */
export type Leaving = "timeout" | "disconnected";

/** A request to a node that calls wait for. */
export interface CallCarrier {
  /** Records that one of its calls has its outcome. */
  release(why: Leaving | undefined): void;
}

/** The sender of all calls to one node. */
export interface CallSender {
  /** Creates the error of a call whose client ended it. */
  createError(why: Leaving, sent: SentCall): NodeError;
  /** Called once for each call. Returns the outcome for its client. `why` is undefined if the node decided the outcome. */
  settle(sent: SentCall, outcome: NodeCallOutcome, why: Leaving | undefined): NodeCallOutcome;
}

export interface SentCallOptions {
  readonly call: Call;
  readonly reach: Reach;
  /** The caller rejects a result that is not one JSON value. */
  readonly isVerified: boolean;
  /** Called once. */
  readonly onOutcome: (outcome: NodeCallOutcome) => void;
}

/** One call to a node, from its start to its outcome. It travels in one HTTP request, and in a second one if that is slow. */
export class SentCall {
  readonly call: Call;
  readonly reach: Reach;
  readonly isVerified: boolean;
  readonly startMs = performance.now();
  readonly #sender: CallSender;
  readonly #onOutcome: SentCallOptions["onOutcome"];
  readonly #onAbort = (): void => this.#leave(isTimeout(this.reach) ? "timeout" : "disconnected");
  #first: CallCarrier | undefined;
  #second: CallCarrier | undefined;
  #isSettled = false;

  constructor(sender: CallSender, { call, reach, isVerified, onOutcome }: SentCallOptions) {
    this.call = call;
    this.reach = reach;
    this.isVerified = isVerified;
    this.#sender = sender;
    this.#onOutcome = onOutcome;
    onAbort(reach, this.#onAbort);
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
  settle(outcome: NodeCallOutcome, why?: Leaving): void {
    if (this.#isSettled) {
      return;
    }
    this.#isSettled = true;
    offAbort(this.reach, this.#onAbort);
    this.#first?.release(why);
    this.#second?.release(why);
    this.#onOutcome(this.#sender.settle(this, outcome, why));
  }

  /** Ends the call at its deadline. */
  expire(): void {
    this.#leave("timeout");
  }

  #leave(why: Leaving): void {
    if (!this.#isSettled) {
      this.settle(this.#sender.createError(why, this), why);
    }
  }
}

const isTimeout = (reach: Reach): boolean => {
  const reason = abortReason(reach);
  return reason instanceof RpcError && reason.status === TIMEOUT_STATUS;
};
