import type { Metrics } from "../telemetry/telemetry.ts";

export interface HttpCounts {
  /** Counts a request in flight. */
  begin(): void;
  end(): void;
  /** Counts a response by its HTTP status. */
  answered(status: number): void;
}

/**
 * Counts requests and responses in plain variables, and copies the counts to the metrics before each scrape.
 * A labelled metric per response costs more than a cache hit, and a timer per turn of the event loop as much again.
 */
export const createHttpCounts = ({
  inFlight,
  httpResponses,
  beforeScrape,
}: Pick<Metrics, "inFlight" | "httpResponses" | "beforeScrape">): HttpCounts => {
  const responses = new Map<number, number>();
  let inFlightCount = 0;

  beforeScrape.add(() => {
    inFlight.set(inFlightCount);
    for (const [status, count] of responses) {
      httpResponses.inc({ status }, count);
    }
    responses.clear();
  });

  return {
    begin: () => {
      inFlightCount++;
    },
    end: () => {
      inFlightCount--;
    },
    answered: (status) => {
      responses.set(status, (responses.get(status) ?? 0) + 1);
    },
  };
};
