import type { Metrics, Telemetry } from "../telemetry/telemetry.ts";
import type { PostRequest } from "./httpRequest.ts";

/**
 * Counts the requests and responses of the server, and logs them. Requests in flight and statuses are plain numbers, copied to the
 * metrics before each scrape. A labelled metric per response costs more than a cache hit.
 */
export class HttpTelemetry {
  readonly metrics: Metrics;
  readonly #log: Telemetry["log"];
  readonly #responses = new Map<number, number>();
  #inFlight = 0;

  constructor({ log, metrics }: Pick<Telemetry, "log" | "metrics">) {
    this.metrics = metrics;
    this.#log = log;
    metrics.beforeScrape.add(() => {
      metrics.inFlight.set(this.#inFlight);
      for (const [status, count] of this.#responses) {
        metrics.httpResponses.inc({ status }, count);
      }
      this.#responses.clear();
    });
  }

  /** Counts a POST in flight. */
  begin(): void {
    this.#inFlight++;
  }

  /** Counts the end of a POST. At level debug, it logs one line for each. */
  end(
    { requestId, caller: { clientId } }: PostRequest,
    { status, left }: { readonly status: number; readonly left: boolean },
    startMs: number,
  ): void {
    this.#inFlight--;
    if (!this.#log.isLevelEnabled("debug")) {
      return;
    }
    const milliseconds = Math.round(performance.now() - startMs);
    this.#log.debug({ requestId, clientId, status, milliseconds, ...(left && { left }) }, "request");
  }

  /** Counts a response by its HTTP status. */
  countResponse(status: number): void {
    this.#responses.set(status, (this.#responses.get(status) ?? 0) + 1);
  }

  /** Logs an error outside a call, or a connection that broke while its response was written. */
  logBroken(error: unknown, requestId: string): void {
    this.#log.warn({ err: error, requestId }, "a request broke");
  }
}
