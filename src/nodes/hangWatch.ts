import type { Dispatcher } from "undici";
import type { Clock } from "../core/clock.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import { Client, connectWithin } from "./undici.ts";

/** One HTTP request in flight. */
export interface RequestInFlight {
  /** A write is sent once: it waits for its response. */
  readonly isWrite: boolean;
  /** Ends the request with an error, after which it is retried on another node. */
  onHang(): void;
}

export interface HangWatchOptions {
  /** Sends a small request on a connection of its own. Returns whether a response began in time. */
  readonly probe: () => Promise<boolean>;
  /** Whether another node can answer. If not, requests wait for this node. */
  readonly hasOther: () => boolean;
  readonly onChange: (isHung: boolean) => void;
  readonly clock: Clock;
}

const { quietMs, connectMs, answerMs, reprobeMs } = RETRY_LIMITS.hang;

/**
 * Finds out whether a node hangs: it sent no byte for a second while requests were in flight, and does not respond to a probe.
 * Then its reads are ended, so that other nodes answer them. The node is probed until it responds.
 */
export class HangWatch {
  readonly #options: HangWatchOptions;
  readonly #inFlight = new Set<RequestInFlight>();
  readonly #ending = new AbortController();
  #lastByteMs = 0;
  /** The start of the request that ended the last idle time. */
  #busySinceMs = 0;
  #isHung = false;
  #isWatching = false;

  constructor(options: HangWatchOptions) {
    this.#options = options;
  }

  get isHung(): boolean {
    return this.#isHung;
  }

  begin(request: RequestInFlight): void {
    if (this.#inFlight.size === 0) {
      this.#busySinceMs = this.#options.clock.nowMs();
    }
    this.#inFlight.add(request);
    if (!this.#isWatching) {
      this.#isWatching = true;
      void this.#watch();
    }
  }

  /** Records that the node sent something. */
  recordBytes(): void {
    this.#lastByteMs = this.#options.clock.nowMs();
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

  /** Ends when no request is in flight, so that an idle node needs no timer. */
  async #watch(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#ending;
    while (!signal.aborted && (this.#isHung || this.#inFlight.size > 0)) {
      const waitMs = this.#isHung ? reprobeMs : this.#quietAtMs - clock.nowMs();
      if (waitMs > 0) {
        await clock.sleep(waitMs, signal);
      }
      if (!signal.aborted && (this.#isHung || (this.#inFlight.size > 0 && clock.nowMs() >= this.#quietAtMs))) {
        await this.#probe();
      }
    }
    this.#isWatching = false;
  }

  /** The time of the next probe, if the node sends nothing until then. */
  get #quietAtMs(): number {
    return Math.max(this.#lastByteMs, this.#busySinceMs) + quietMs;
  }

  async #probe(): Promise<void> {
    const { probe, hasOther, clock } = this.#options;
    const askedMs = clock.nowMs();
    const isAnswered = await probe();
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
    if (hasOther()) {
      this.#endReads();
    }
  }

  #endReads(): void {
    for (const request of [...this.#inFlight]) {
      if (!request.isWrite) {
        request.onHang();
      }
    }
  }

  #change(isHung: boolean): void {
    this.#isHung = isHung;
    this.#options.onChange(isHung);
  }
}

export interface LivenessProbeOptions {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

/** Resolves when a response begins, or at the end of the time limit. Any response counts, whatever its status. */
class ProbeHandler implements Dispatcher.DispatchHandler {
  readonly #outcome = Promise.withResolvers<boolean>();
  #timer = this.#limit(connectMs);

  get outcome(): Promise<boolean> {
    return this.#outcome.promise;
  }

  /** The connection is open. */
  onRequestStart(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#limit(answerMs);
  }

  onResponseStart(): void {
    this.finish(true);
  }

  onResponseData(): void {
    this.finish(true);
  }

  onResponseEnd(): void {
    this.finish(true);
  }

  onResponseError(): void {
    this.finish(false);
  }

  finish(isAnswered: boolean): void {
    clearTimeout(this.#timer);
    this.#outcome.resolve(isAnswered);
  }

  /** After a pause of the event loop, the response may have arrived: it is read before the immediate. */
  #limit(timeoutMs: number): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.finish(false)), timeoutMs);
  }
}

/** Asks a node for its chain id on a connection of its own, so that slow requests do not delay the response. */
export class LivenessProbe {
  readonly #options: LivenessProbeOptions;
  #client: Client | undefined;

  constructor(options: LivenessProbeOptions) {
    this.#options = options;
  }

  /** Returns whether a response began within RETRY_LIMITS.hang. Never rejects. */
  async send(): Promise<boolean> {
    const { origin, path, headers } = this.#options;
    this.#client ??= new Client(origin, { pipelining: 1, connect: connectWithin(connectMs) });
    const handler = new ProbeHandler();
    this.#client.dispatch({ path, method: "POST", headers, body: BODY }, handler);
    const isAnswered = await handler.outcome;
    if (!isAnswered) {
      await this.close();
    }
    return isAnswered;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.destroy();
  }
}
