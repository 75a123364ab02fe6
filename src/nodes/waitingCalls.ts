import { FairQueue, ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import type { CallCarrier, SentCall } from "./sentCall.ts";

/** A call of a client that waits until the node may get one more request. It ends at its deadline. */
class WaitingCall implements CallCarrier {
  readonly call: SentCall;
  readonly isShared: boolean;
  readonly owner: QueueOwner;
  readonly #onSettled: (waiting: WaitingCall) => void;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(call: SentCall, isShared: boolean, onSettled: (waiting: WaitingCall) => void) {
    const { clientId = "", connection } = call.reach;
    this.call = call;
    this.isShared = isShared;
    this.owner = ownerOf({ clientId, connection });
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
export class WaitingCalls {
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
