import { canonicalLogFilter } from "../ethereum/logFilter.ts";
import { SharedTask } from "../limits/sharedTask.ts";
import type { FetchedLogs, FetchLogs } from "./fetchLogs.ts";
import type { FetchRange } from "./plan.ts";
import type { FetchContext } from "./requestLogs.ts";

const NO_READER = new Error("No query needs this range any more");

/** A recent range is checked against the view: only queries with the same head share it. */
const keyOf = (range: FetchRange, { view }: FetchContext): string => {
  const { from, to, filter, final, blockHash, isRecheck, avoided, comparedOrigin } = range;
  const head = final || view.heads.latest.hash;
  return [from, to, head, blockHash, isRecheck, avoided?.name, comparedOrigin, canonicalLogFilter(filter)].join(" ");
};

/** A fetch range that is being fetched. Queries wait for its result, and some of them still need its request. */
class SharedFetch extends SharedTask<FetchedLogs> {
  readonly #notNeeded = new AbortController();
  #needing = 0;

  /** Ends the wait for a slot and a node if no query needs the request any more, and with the fetch. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.#notNeeded.signal, this.ending.signal]);
  }

  /**
   * Records that a query needs the request, until the signal aborts or it calls the returned function. A query that failed
   * elsewhere needs no new request, nor do the parts of a range of which one failed. A response that a node is sending is
   * still read and cached.
   */
  need(signal: AbortSignal): () => void {
    this.#needing++;
    const leave = (): void => {
      this.#needing--;
      if (this.#needing === 0) {
        this.close();
        this.#notNeeded.abort(NO_READER);
      }
    };
    signal.addEventListener("abort", leave, { once: true });
    return () => {
      signal.removeEventListener("abort", leave);
      if (!signal.aborted) {
        leave();
      }
    };
  }
}

/** Coalesces equal fetch ranges in flight. A shared fetch ends when no query waits for it any more. */
export const shareFetches = (fetchLogs: FetchLogs): FetchLogs => {
  const inFlight = new Map<string, SharedFetch>();

  return async (range, context) => {
    const { owner } = context;
    owner.signal.throwIfAborted();
    const key = keyOf(range, context);
    // The deadline of a query is not that of the others: the request ends at its own.
    const caller = { signal: context.signal, deadlineMs: Number.POSITIVE_INFINITY };
    const existing = inFlight.get(key);
    const shared = existing ?? new SharedFetch(caller, key, inFlight);
    const release = shared.need(owner.signal);
    try {
      if (existing !== undefined) {
        return await existing.join(caller);
      }
      const fetched = context.with({ ending: shared.ending }).withFetch({ owner: { ...owner, signal: shared.signal } });
      return await shared.start(fetchLogs(range, fetched));
    } finally {
      release();
    }
  };
};
