import { type Clock, systemClock } from "../core/clock.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";

/** One HTTP request in flight. */
export interface RequestInFlight {
  /** It waits for its response although the node hangs: a write is sent once, and a late head is a vote. */
  readonly isAwaited: boolean;
  /** Ends the request with an error, after which it is retried on another node. */
  onHang(): void;
}

interface Probe {
  /** Sends a small request on a connection of its own. Returns whether a response began in time. */
  send(): Promise<boolean>;
}

/** The node, as the watch uses it. */
export interface WatchedNode {
  /** Whether another node can answer. If not, requests wait for this node even while it hangs. */
  hasOther(): boolean;
  /** The node has begun to hang, or has responded again. */
  onHang(isHung: boolean): void;
}

const { quietMs, reprobeMs } = RETRY_LIMITS.hang;

/**
 * Finds out whether a node hangs: it sent no byte for a second while requests were in flight, and does not respond to a probe.
 * Then its reads are ended, so that other nodes answer them. The node is probed until it responds.
 */
export class HangWatch {
  readonly #node: WatchedNode;
  readonly #probe: Probe;
  readonly #clock: Clock;
  readonly #inFlight = new Set<RequestInFlight>();
  readonly #ending = new AbortController();
  #lastByteMs = 0;
  /** The start of the request that ended the last idle time. */
  #busySinceMs = 0;
  #isHung = false;
  #isWatching = false;

  constructor(node: WatchedNode, probe: Probe, clock: Clock = systemClock) {
    this.#node = node;
    this.#probe = probe;
    this.#clock = clock;
  }

  get isHung(): boolean {
    return this.#isHung;
  }

  begin(request: RequestInFlight): void {
    if (this.#inFlight.size === 0) {
      this.#busySinceMs = this.#clock.nowMs();
    }
    this.#inFlight.add(request);
    if (!this.#isWatching) {
      this.#isWatching = true;
      void this.#watch();
    }
  }

  /** Records that the node sent something. */
  recordBytes(): void {
    this.#lastByteMs = this.#clock.nowMs();
    if (this.#isHung) {
      this.#change(false);
    }
  }

  end(request: RequestInFlight): void {
    this.#inFlight.delete(request);
  }

  close(): void {
    this.#ending.abort();
  }

  /** Ends when no request is in flight, so an idle node needs no timer. */
  async #watch(): Promise<void> {
    const clock = this.#clock;
    const { signal } = this.#ending;
    while (!signal.aborted && (this.#isHung || this.#inFlight.size > 0)) {
      const waitMs = this.#isHung ? reprobeMs : this.#quietAtMs - clock.nowMs();
      if (waitMs > 0) {
        await clock.sleep(waitMs, signal);
      }
      if (!signal.aborted && (this.#isHung || (this.#inFlight.size > 0 && clock.nowMs() >= this.#quietAtMs))) {
        await this.#check();
      }
    }
    this.#isWatching = false;
  }

  /** The time of the next probe, if the node sends nothing until then. */
  get #quietAtMs(): number {
    return Math.max(this.#lastByteMs, this.#busySinceMs) + quietMs;
  }

  async #check(): Promise<void> {
    const askedMs = this.#clock.nowMs();
    const isAnswered = await this.#probe.send();
    if (this.#ending.signal.aborted) {
      return;
    }
    if (isAnswered) {
      this.recordBytes();
    }
    // A response to any other request shows the same.
    if (this.#lastByteMs >= askedMs) {
      return;
    }
    if (!this.#isHung) {
      this.#change(true);
    }
    if (this.#node.hasOther()) {
      this.#endReads();
    }
  }

  #endReads(): void {
    for (const request of [...this.#inFlight]) {
      if (!request.isAwaited) {
        request.onHang();
      }
    }
  }

  #change(isHung: boolean): void {
    this.#isHung = isHung;
    this.#node.onHang(isHung);
  }
}
