import type { IncomingHttpHeaders } from "node:http";

export interface Cors {
  /** Flat list of header names and values for every answer. */
  headers(origin: string | undefined): readonly string[];
  preflight(headers: IncomingHttpHeaders): readonly string[];
}

const EXPOSED = ["Access-Control-Expose-Headers", "Cache-Status, x-forebay-pending, x-request-id, Retry-After"];
const MAX_AGE_SECONDS = 7_200;

const NONE: readonly string[] = [];

/** Header names only: what comes back is what was asked for, and nothing else gets into our answer. */
const HEADER_NAMES = /^[\w\-, ]{1,1000}$/;

/** Programs that are no browsers send no Origin and need none of it. `*` for anyone without credentials; a list for those origins alone, with credentials. */
export const createCors = (origins: "*" | readonly string[]): Cors => {
  const anyone = ["Access-Control-Allow-Origin", "*", ...EXPOSED];
  const nobody = ["Vary", "Origin"];

  const headers = (origin: string | undefined): readonly string[] => {
    if (origins === "*") return origin === undefined ? NONE : anyone;
    if (origin === undefined || !origins.includes(origin)) return nobody;
    return [...nobody, "Access-Control-Allow-Origin", origin, "Access-Control-Allow-Credentials", "true", ...EXPOSED];
  };

  const preflight = ({ origin, "access-control-request-headers": asked }: IncomingHttpHeaders): readonly string[] => [
    ...headers(origin),
    "Access-Control-Allow-Methods",
    "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers",
    asked !== undefined && HEADER_NAMES.test(asked) ? asked : "content-type",
    "Access-Control-Max-Age",
    String(MAX_AGE_SECONDS),
  ];

  return { headers, preflight };
};
