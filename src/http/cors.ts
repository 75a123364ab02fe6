import type { IncomingHttpHeaders } from "node:http";

export interface Cors {
  /** Returns the headers of any response, as a flat list of names and values. */
  headers(origin: string | undefined): readonly string[];
  /** Returns the headers of the response to a preflight, as a flat list. */
  preflight(headers: IncomingHttpHeaders): readonly string[];
}

const EXPOSED = [
  "Access-Control-Expose-Headers",
  "Cache-Status, x-forebay-pending, x-forebay-head, x-request-id, Retry-After",
];
const MAX_AGE_SECONDS = 7_200;

const NONE: readonly string[] = [];

/** Header names only. The requested list is copied into the response, so that it must not contain anything else. */
const HEADER_NAMES = /^[\w\-, ]{1,1000}$/;

/**
 * Creates the CORS headers. `*` allows any origin without credentials; a list allows these origins with credentials.
 * Programs that are not browsers send no Origin and need no CORS headers.
 */
export const createCors = (origins: "*" | readonly string[]): Cors => {
  const anyOrigin = ["Access-Control-Allow-Origin", "*", ...EXPOSED];
  const noOrigin = ["Vary", "Origin"];

  const headers = (origin: string | undefined): readonly string[] => {
    if (origins === "*") {
      return origin === undefined ? NONE : anyOrigin;
    }
    if (origin === undefined || !origins.includes(origin)) {
      return noOrigin;
    }
    return [...noOrigin, "Access-Control-Allow-Origin", origin, "Access-Control-Allow-Credentials", "true", ...EXPOSED];
  };

  const preflight = ({
    origin,
    "access-control-request-headers": requested,
  }: IncomingHttpHeaders): readonly string[] => [
    ...headers(origin),
    "Access-Control-Allow-Methods",
    "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers",
    requested !== undefined && HEADER_NAMES.test(requested) ? requested : "content-type",
    "Access-Control-Max-Age",
    String(MAX_AGE_SECONDS),
  ];

  return { headers, preflight };
};
