import type { RpcResponse } from "../core/rpcSource.ts";
import { isEmpty } from "../verification/responseBlock.ts";

export interface HedgeOptions {
  readonly afterMs: number;
  /** Of all reads, how many may be sent twice. */
  readonly maxShare: number;
}

export interface Hedge {
  /** Asks `first`, and after a while `second` too; the first answer with something in it wins and the other is aborted. */
  run(
    signal: AbortSignal,
    first: (signal: AbortSignal) => Promise<RpcResponse>,
    second: (signal: AbortSignal) => Promise<RpcResponse>,
  ): Promise<RpcResponse>;
}

/** Asking a second node when the first is slow, as long as that stays a small share of all reads. */
export const createHedge = ({ afterMs, maxShare }: HedgeOptions, onHedge: () => void): Hedge => {
  let reads = 0;
  let hedges = 0;

  return {
    run: async (signal, first, second) => {
      reads += 1;
      const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
      const losers = new AbortController();
      const either = AbortSignal.any([signal, losers.signal]);
      let running = 1;
      let empty: RpcResponse | undefined;

      // An empty answer or an error does not win against one still to come.
      const settle = (answer: RpcResponse | undefined, error: unknown): void => {
        running -= 1;
        const isGood = answer && !(answer.body instanceof Uint8Array && isEmpty(answer.body));
        empty ??= isGood ? undefined : answer;
        const settled = isGood ? answer : running === 0 ? empty : undefined;
        if (settled) {
          resolve(settled);
        } else if (running === 0) {
          reject(error);
        }
      };
      const start = (ask: typeof first): void => {
        ask(either).then(
          (answer) => settle(answer, undefined),
          (error: unknown) => settle(undefined, error),
        );
      };

      start(first);
      const timer = setTimeout(() => {
        if (hedges + 1 <= reads * maxShare) {
          hedges += 1;
          running += 1;
          onHedge();
          start(second);
        }
      }, afterMs);
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        losers.abort();
      }
    },
  };
};
