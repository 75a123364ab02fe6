import type { Metrics } from "../telemetry.ts";

export interface HttpCounts {
  begin(): void;
  end(): void;
  answered(status: number): void;
}

/** Counts are added up over one turn of the event loop: a labelled metric costs more than many an answer from memory. */
export const createHttpCounts = ({
  inFlight,
  httpResponses,
}: Pick<Metrics, "inFlight" | "httpResponses">): HttpCounts => {
  const responses = new Map<number, number>();
  let open = 0;
  let scheduled = false;

  const flush = (): void => {
    scheduled = false;
    inFlight.set(open);
    for (const [status, count] of responses) httpResponses.inc({ status }, count);
    responses.clear();
  };
  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(flush);
  };

  return {
    begin: () => {
      open++;
      schedule();
    },
    end: () => {
      open--;
      schedule();
    },
    answered: (status) => {
      responses.set(status, (responses.get(status) ?? 0) + 1);
      schedule();
    },
  };
};
