import { createRequire } from "node:module";
import type * as Undici from "undici";

const require = createRequire(import.meta.url);

/** The index of undici also loads fetch, caches and mocks: 8 MB and 30 ms of each start. */
export const Pool: typeof Undici.Pool = require("undici/lib/dispatcher/pool.js");
export const Client: typeof Undici.Client = require("undici/lib/dispatcher/client.js");
const buildConnector: typeof Undici.buildConnector = require("undici/lib/core/connect.js");
const { ConnectTimeoutError }: typeof Undici.errors = require("undici/lib/core/errors.js");

export type Pool = Undici.Pool;
export type Client = Undici.Client;

/**
 * Creates a connector whose attempts fail after `timeoutMs`. The timer of undici's own limit is late by up to 500 ms.
 * It only closes the socket of an attempt that has failed.
 */
export const connectWithin = (timeoutMs: number): Undici.buildConnector.connector => {
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
