import type { buildConnector as Connectors } from "undici";
import { buildConnector, ConnectTimeoutError } from "./undici.ts";

/**
 * Creates a connector whose attempts fail after `timeoutMs`. The timer of undici's own limit is late by up to 500 ms.
 * It only closes the socket of an attempt that has failed.
 */
export const connectWithin = (timeoutMs: number): Connectors.connector => {
  const connect = buildConnector({ allowH2: false, timeout: timeoutMs });
  return (options, callback) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      callback(new ConnectTimeoutError(`no connection within ${timeoutMs} ms`), null);
    }, timeoutMs);
    connect(options, (...result) => {
      if (isLate) {
        result[1]?.destroy();
        return;
      }
      clearTimeout(timer);
      callback(...result);
    });
  };
};
