import { FairQueue, INTERNAL_OWNER, ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import type { CallCarrier, SentCall } from "./exchange.ts";

/** Calls of forebay itself have no connection. */
export const isOwn = ({ scope }: SentCall): boolean => scope.caller?.connection === undefined;

const ownerOfCall = ({ scope: { caller } }: SentCall): QueueOwner =>
  caller === undefined ? INTERNAL_OWNER : ownerOf(caller);

/** Calls that wait together: one of a client, or a batch of forebay's own. */
class WaitingCalls implements CallCarrier {
  readonly calls: readonly SentCall[];
  readonly isShared: boolean;
  readonly isOwn: boolean;
  /** It may be refused in favour of another client. */
  readonly mayBeRefused: boolean;
  readonly owner: QueueOwner;
  readonly #queue: FairQueue<WaitingCalls>;

  constructor(
    calls: readonly [SentCall, ...SentCall[]],
    options: Pick<WaitingCalls, "isShared" | "mayBeRefused">,
    queue: FairQueue<WaitingCalls>,
  ) {
    const [first] = calls;
    this.calls = calls;
    this.isShared = options.isShared;
    this.mayBeRefused = options.mayBeRefused;
    this.isOwn = isOwn(first);
    this.owner = ownerOfCall(first);
    this.#queue = queue;
    for (const call of calls) {
      call.attach(this);
    }
    queue.add(this.owner, this);
  }

  get traceparent(): string | undefined {
    return this.calls[0]?.scope.traceHeaders?.traceparent;
  }

  /** A caller disconnected, or a deadline passed. */
  release(): void {
    // The call that ends now is not complete yet.
    if (this.calls.filter(({ isComplete }) => !isComplete).length <= 1) {
      this.#queue.remove(this.owner, this);
    }
  }
}

/** The calls that wait for one node. Clients take turns, and then their connections. */
export class CallQueue {
  /** Polls of the head are sent first: without them, every client gets answers of an old head. */
  readonly #heads = new FairQueue<WaitingCalls>();
  readonly #queue = new FairQueue<WaitingCalls>();
  readonly #maxWaiting: number;

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
  }

  get size(): number {
    return this.#heads.size + this.#queue.size;
  }

  addOwnCall(call: SentCall, isShared: boolean): void {
    const queue = call.scope.isHeadRead === true ? this.#heads : this.#queue;
    new WaitingCalls([call], { isShared, mayBeRefused: false }, queue);
  }

  /** Adds a batch of forebay's own, which waits together. */
  addOwn(calls: readonly SentCall[], isShared: boolean): void {
    const [first, ...others] = calls;
    if (first !== undefined) {
      new WaitingCalls([first, ...others], { isShared, mayBeRefused: false }, this.#queue);
    }
  }

  /**
   * Adds a call of a client. Returns the call that has no room: the newest of the client with the most, or this one. Only the first
   * call of a client's request can be refused: the others are part of work that was admitted. However many these are, another client
   * has room for its share.
   */
  add(call: SentCall, isShared: boolean): SentCall | undefined {
    const isFirst = call.scope.progress?.hasNodePlace === false;
    let refused: SentCall | undefined;
    if (isFirst && this.#queue.size >= this.#maxWaiting) {
      const { clientId } = ownerOfCall(call);
      refused = this.#queue.evictFor(clientId, ({ mayBeRefused }) => mayBeRefused)?.calls[0];
      if (refused === undefined && this.#queue.countOf(clientId) >= this.#shareOf(clientId)) {
        return call;
      }
    }
    admit(call);
    new WaitingCalls([call], { isShared, mayBeRefused: isFirst }, this.#queue);
    return refused;
  }

  /** Takes the calls of the next HTTP request, as long as they may share it. `hasPlace`: calls of clients may be sent. */
  take(maxCalls: number, hasPlace: boolean): readonly SentCall[] {
    const first = this.#heads.take() ?? this.#queue.take((each) => hasPlace || each.isOwn);
    if (first === undefined) {
      return [];
    }
    const calls = [...first.calls];
    const canShare = (next: WaitingCalls | undefined): boolean =>
      first.isShared &&
      next?.isShared === true &&
      (hasPlace || next.isOwn) &&
      next.traceparent === first.traceparent &&
      calls.length + next.calls.length <= maxCalls;
    while (canShare(this.#queue.peek())) {
      calls.push(...(this.#queue.take()?.calls ?? []));
    }
    return calls.filter(({ isComplete }) => !isComplete);
  }

  /** Takes all calls that are accepted. Calls that wait together are taken together. */
  takeAll(accepts: (call: SentCall) => boolean): readonly SentCall[] {
    const taken: SentCall[] = [];
    for (const queue of [this.#heads, this.#queue]) {
      const take = () => queue.take(({ calls }) => calls.every(accepts));
      for (let next = take(); next !== undefined; next = take()) {
        taken.push(...next.calls);
      }
    }
    return taken;
  }

  /** The calls that each client may have in the queue. */
  #shareOf(clientId: string): number {
    const others = this.#queue.countOf(clientId) > 0 ? 0 : 1;
    return Math.floor(this.#maxWaiting / (this.#queue.clients + others));
  }
}

/** The request of the call has a call that was sent, or waits. */
export const admit = ({ scope: { progress } }: SentCall): void => {
  if (progress !== undefined) {
    progress.hasNodePlace = true;
  }
};
