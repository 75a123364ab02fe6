import type { RpcResponse } from "../core/rpcSource.ts";
import { isEmpty } from "../verification/responseBlock.ts";

export interface HedgeOptions {
  readonly afterMs: number;
  /** Share of all reads that may be sent twice. */
  readonly maxShare: number;
}

export interface Hedge {
  /**
   * Sends `first`, and after `afterMs` also `second`.
   * The first response that is not empty wins, and the other request is aborted.
   */
  run(
    signal: AbortSignal,
    first: (signal: AbortSignal) => Promise<RpcResponse>,
    second: (signal: AbortSignal) => Promise<RpcResponse>,
  ): Promise<RpcResponse>;
}

type Attempt = (signal: AbortSignal) => Promise<RpcResponse>;

const hasContent = ({ body }: RpcResponse): boolean => !(body instanceof Uint8Array && isEmpty(body));

/** Runs attempts in parallel. An empty response or an error wins only when no other attempt is in flight. */
class Race {
  readonly #result = Promise.withResolvers<RpcResponse>();
  readonly #losers = new AbortController();
  readonly #signal: AbortSignal;
  #running = 0;
  #empty: RpcResponse | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = AbortSignal.any([signal, this.#losers.signal]);
  }

  get result(): Promise<RpcResponse> {
    return this.#result.promise;
  }

  start(attempt: Attempt): void {
    this.#running += 1;
    attempt(this.#signal).then(
      (response) => this.#onResponse(response),
      (error: unknown) => this.#onError(error),
    );
  }

  abortLosers(): void {
    this.#losers.abort();
  }

  #onResponse(response: RpcResponse): void {
    this.#running -= 1;
    if (hasContent(response)) {
      this.#result.resolve(response);
      return;
    }
    this.#empty ??= response;
    if (this.#running === 0) {
      this.#result.resolve(this.#empty);
    }
  }

  #onError(error: unknown): void {
    this.#running -= 1;
    if (this.#running > 0) {
      return;
    }
    if (this.#empty) {
      this.#result.resolve(this.#empty);
    } else {
      this.#result.reject(error);
    }
  }
}

/** Creates a hedge: it sends a slow read to a second node too, while that is a small share of all reads. */
export const createHedge = ({ afterMs, maxShare }: HedgeOptions, onHedge: () => void): Hedge => {
  let reads = 0;
  let hedges = 0;

  return {
    run: async (signal, first, second) => {
      reads += 1;
      const race = new Race(signal);
      race.start(first);
      const timer = setTimeout(() => {
        if (hedges + 1 <= reads * maxShare) {
          hedges += 1;
          onHedge();
          race.start(second);
        }
      }, afterMs);
      try {
        return await race.result;
      } finally {
        clearTimeout(timer);
        race.abortLosers();
      }
    },
  };
};
