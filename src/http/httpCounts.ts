import type { Metrics } from "../telemetry/telemetry.ts";

export interface HttpCounts {
  begin(): void;
  end(): void;
  answered(status: number): void;
}

/**
 * Counts are added up here and handed over when they are collected: a labelled metric costs more than many an answer from memory, and a
 * timer or an immediate for each turn of the event loop costs as much again.
 */
export const createHttpCounts = ({
  inFlight,
  httpResponses,
  beforeScrape,
}: Pick<Metrics, "inFlight" | "httpResponses" | "beforeScrape">): HttpCounts => {
  const responses = new Map<number, number>();
  let open = 0;

  beforeScrape.add(() => {
    inFlight.set(open);
    for (const [status, count] of responses) httpResponses.inc({ status }, count);
    responses.clear();
  });

  return {
    begin: () => {
      open++;
    },
    end: () => {
      open--;
    },
    answered: (status) => {
      responses.set(status, (responses.get(status) ?? 0) + 1);
    },
  };
};
