import { setTimeout as sleep } from "node:timers/promises";
import type { StateFetch } from "../../../src/core/stateFetch.ts";
import { RpcError } from "../../../src/jsonrpc/rpcError.ts";
import type { Anvil } from "../../devnet/anvil.ts";

export interface CountedFetch {
  readonly fetch: StateFetch;
  /** Number of HTTP requests, with any number of calls each. */
  readonly roundTrips: number;
  readonly calls: number;
}

export interface CountedFetchOptions {
  /** Methods that this node does not have. */
  readonly refused?: readonly string[];
  readonly latencyMs?: number;
}

interface Response {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Requests a real node in batches, with a configured latency, and counts the requests. */
export const countedFetch = (anvil: Anvil, options: CountedFetchOptions = {}): CountedFetch => {
  const { refused = [], latencyMs = 0 } = options;
  let roundTrips = 0;
  let asked = 0;
  const fetch: StateFetch = async (calls) => {
    roundTrips++;
    asked += calls.length;
    if (latencyMs > 0) {
      await sleep(latencyMs);
    }
    const outcomes: unknown[] = calls.map(() => new RpcError(-32601, "the method does not exist"));
    const sent = calls.flatMap(({ method, params }, id) =>
      refused.includes(method) ? [] : [{ jsonrpc: "2.0", id, method, params }],
    );
    const responses: Response[] = JSON.parse(await anvil.post(JSON.stringify(sent)));
    for (const { id, result, error } of responses) {
      outcomes[id] = error === undefined ? result : new RpcError(error.code, error.message);
    }
    return { outcomes };
  };
  return {
    fetch,
    get roundTrips() {
      return roundTrips;
    },
    get calls() {
      return asked;
    },
  };
};
