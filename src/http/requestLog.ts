import type { Log } from "../telemetry/telemetry.ts";
import type { HttpRequest } from "./httpRequest.ts";

/** Creates the request log: one line per request, at level debug. */
export const createRequestLog =
  (log: Log) =>
  ({ requestId, caller: { clientId }, response }: HttpRequest, startMs: number): void => {
    if (!log.isLevelEnabled("debug")) {
      return;
    }
    const milliseconds = Math.round(performance.now() - startMs);
    const left = !response.writableFinished;
    log.debug({ requestId, clientId, status: response.statusCode, milliseconds, ...(left && { left }) }, "request");
  };
