import { unavailable } from "../jsonrpc/rpcError.ts";

/** Period of the checks that this process runs. */
const TICK_MS = 50;
/** A process that was stopped for this time may have missed a round. Below ROUND_TIMEOUT_MS of viewRounds.ts. */
const STALE_MS = 250;
/** The longest wait of a request. It ends only if the main process is stopped. */
const MAX_HOLD_MS = 2_000;

/** Shows whether this process was stopped so recently that messages of the main process may be unread. */
export class LoopWatch {
  readonly #timer: NodeJS.Timeout;
  readonly #nowMs: () => number;
  readonly #onFresh = new Set<() => void>();
  #lastTickMs: number;
  /** Messages that arrived before this time have been read: the event loop has polled since. */
  #readUntilMs: number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#lastTickMs = nowMs();
    this.#readUntilMs = this.#lastTickMs;
    this.#timer = setInterval(() => this.tick(), TICK_MS);
    this.#timer.unref();
  }

  get isStale(): boolean {
    return this.#nowMs() - this.#readUntilMs > STALE_MS;
  }

  tick(): void {
    this.#readUntilMs = this.#lastTickMs;
    this.#lastTickMs = this.#nowMs();
    if (!this.isStale) {
      for (const listener of this.#onFresh) {
        listener();
      }
    }
  }

  onFresh(listener: () => void): () => void {
    this.#onFresh.add(listener);
    return () => this.#onFresh.delete(listener);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Holds the requests of one chain while this process must not answer from its view. */
export class ViewGate {
  readonly #watch: LoopWatch;
  readonly #stop: () => void;
  /** Between the acknowledgement of a round and its commit. */
  #isPrepared = false;
  #opened: PromiseWithResolvers<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(watch: LoopWatch) {
    this.#watch = watch;
    this.#stop = watch.onFresh(() => this.#release());
  }

  /** Returns undefined if a request may take the view now. Otherwise it rejects with RpcError (503) after MAX_HOLD_MS. */
  wait(): Promise<void> | undefined {
    if (!this.#isPrepared && !this.#watch.isStale) {
      return undefined;
    }
    if (this.#opened === undefined) {
      this.#opened = Promise.withResolvers<void>();
      this.#timer = setTimeout(() => this.#expire(), MAX_HOLD_MS);
    }
    return this.#opened.promise;
  }

  hold(): void {
    this.#isPrepared = true;
  }

  open(): void {
    this.#isPrepared = false;
    this.#release();
  }

  close(): void {
    this.#stop();
    this.#expire();
  }

  #release(): void {
    if (!this.#isPrepared && !this.#watch.isStale) {
      clearTimeout(this.#timer);
      this.#opened?.resolve();
      this.#opened = undefined;
    }
  }

  #expire(): void {
    clearTimeout(this.#timer);
    this.#opened?.promise.catch(() => undefined);
    this.#opened?.reject(unavailable("the main process does not respond: the view may be old"));
    this.#opened = undefined;
  }
}
