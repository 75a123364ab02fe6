import { canonicalLogFilter } from "../ethereum/logFilter.ts";
import type { Fetched, FetchLogs } from "./fetchLogs.ts";
import type { FetchRange } from "./fetchRange.ts";
import type { FetchContext } from "./requestLogs.ts";

interface Flight {
  readonly fetched: Promise<Fetched>;
  /** Ends the waiting for a node. */
  readonly unwanted: AbortController;
  /** Ends what a node is answering, too. */
  readonly ended: AbortController;
  wanted: number;
  followers: number;
}

const NOBODY = new Error("Nobody waits for this span any more");

/** A recent span is checked against the view: only requests with the same head share it. */
const keyOf = ({ from, to, filter, final, blockHash, isAgain }: FetchRange, { view }: FetchContext): string =>
  [from, to, final || view.heads.latest.hash, blockHash, isAgain, canonicalLogFilter(filter)].join(" ");

/** Equal spans in flight are fetched once, for as long as any of those who wait for them is there. */
export const shareFetches = (fetchLogs: FetchLogs): FetchLogs => {
  const flights = new Map<string, Flight>();

  const forget = (key: string, flight: Flight) => {
    if (flights.get(key) === flight) flights.delete(key);
  };

  const start = (key: string, job: FetchRange, context: FetchContext): Flight => {
    const ended = new AbortController();
    const unwanted = new AbortController();
    const asker = { ...context.asker, signal: AbortSignal.any([unwanted.signal, ended.signal]) };
    const fetched = fetchLogs(job, { ...context, signal: ended.signal, asker });
    const flight = { fetched, unwanted, ended, wanted: 0, followers: 0 };
    flights.set(key, flight);
    const land = () => forget(key, flight);
    fetched.then(land, land);
    return flight;
  };

  return async (job, context) => {
    context.asker.signal.throwIfAborted();
    const key = keyOf(job, context);
    const flight = flights.get(key) ?? start(key, job, context);
    flight.followers++;
    flight.wanted++;
    const { promise: left, reject } = Promise.withResolvers<never>();
    const onLeave = () => reject(context.signal.reason);
    // A query that failed elsewhere wants nothing more; what is being answered for it still comes in, and is kept.
    const onUnwanted = () => {
      flight.wanted--;
      if (flight.wanted > 0) return;
      forget(key, flight);
      flight.unwanted.abort(NOBODY);
    };
    context.signal.addEventListener("abort", onLeave, { once: true });
    context.asker.signal.addEventListener("abort", onUnwanted, { once: true });
    try {
      return await Promise.race([flight.fetched, left]);
    } finally {
      context.signal.removeEventListener("abort", onLeave);
      context.asker.signal.removeEventListener("abort", onUnwanted);
      flight.followers--;
      if (!context.asker.signal.aborted) flight.wanted--;
      if (flight.followers === 0) {
        forget(key, flight);
        flight.ended.abort(NOBODY);
      }
    }
  };
};
