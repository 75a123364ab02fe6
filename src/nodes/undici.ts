import { createRequire } from "node:module";
import type * as Undici from "undici";

const require = createRequire(import.meta.url);

/** The index of undici also loads fetch, caches and mocks: 8 MB and 30 ms of each start. */
export const Pool: typeof Undici.Pool = require("undici/lib/dispatcher/pool.js");
export const Client: typeof Undici.Client = require("undici/lib/dispatcher/client.js");
export const buildConnector: typeof Undici.buildConnector = require("undici/lib/core/connect.js");
export const { ConnectTimeoutError }: typeof Undici.errors = require("undici/lib/core/errors.js");

export type Pool = Undici.Pool;
export type Client = Undici.Client;
