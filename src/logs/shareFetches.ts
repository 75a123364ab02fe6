import { canonicalLogFilter } from "../ethereum/logFilter.ts";
import type { FetchedLogs, FetchLogs } from "./fetchLogs.ts";
import type { FetchRange } from "./plan.ts";
import type { FetchContext } from "./requestLogs.ts";

/** A fetch range that is being fetched, and the queries that share it. */
interface SharedFetch {
  readonly fetched: Promise<FetchedLogs>;
  /** Ends the wait for a slot and a node. */
  readonly waiting: AbortController;
  /** Ends the request to a node too. */
  readonly requesting: AbortController;
  /** Queries that still need a new request. */
  waiters: number;
  /** Queries that wait for the result. */
  readers: number;
}

const NO_READER = new Error("No query needs this range any more");

/** A recent range is checked against the view: only queries with the same head share it. */
const keyOf = (range: FetchRange, { view }: FetchContext): string => {
  const { from, to, filter, final, blockHash, isRecheck, avoided, comparedOrigin } = range;
  const head = final || view.heads.latest.hash;
  return [from, to, head, blockHash, isRecheck, avoided?.name, comparedOrigin, canonicalLogFilter(filter)].join(" ");
};

/** Coalesces equal fetch ranges in flight. A shared fetch ends when no query waits for it any more. */
export const shareFetches = (fetchLogs: FetchLogs): FetchLogs => {
  const inFlight = new Map<string, SharedFetch>();

  const remove = (key: string, shared: SharedFetch) => {
    if (inFlight.get(key) === shared) {
      inFlight.delete(key);
    }
  };

  const start = (key: string, range: FetchRange, context: FetchContext): SharedFetch => {
    const requesting = new AbortController();
    const waiting = new AbortController();
    const owner = { ...context.owner, signal: AbortSignal.any([waiting.signal, requesting.signal]) };
    const fetched = fetchLogs(range, context.with({ ending: requesting }).withFetch({ owner }));
    const shared = { fetched, waiting, requesting, waiters: 0, readers: 0 };
    inFlight.set(key, shared);
    const complete = () => remove(key, shared);
    fetched.then(complete, complete);
    return shared;
  };

  return async (range, context) => {
    context.owner.signal.throwIfAborted();
    const key = keyOf(range, context);
    const shared = inFlight.get(key) ?? start(key, range, context);
    shared.readers++;
    shared.waiters++;
    const { promise: left, reject } = Promise.withResolvers<never>();
    const onLeave = () => reject(context.signal.reason);
    // A query that failed elsewhere needs no new request. A response that a node is sending is still read and cached.
    const onWaitEnd = () => {
      shared.waiters--;
      if (shared.waiters > 0) {
        return;
      }
      remove(key, shared);
      shared.waiting.abort(NO_READER);
    };
    context.signal.addEventListener("abort", onLeave, { once: true });
    context.owner.signal.addEventListener("abort", onWaitEnd, { once: true });
    try {
      return await Promise.race([shared.fetched, left]);
    } finally {
      context.signal.removeEventListener("abort", onLeave);
      context.owner.signal.removeEventListener("abort", onWaitEnd);
      shared.readers--;
      if (!context.owner.signal.aborted) {
        shared.waiters--;
      }
      if (shared.readers === 0) {
        remove(key, shared);
        shared.requesting.abort(NO_READER);
      }
    }
  };
};
