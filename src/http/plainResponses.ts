import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { HttpTelemetry } from "./httpTelemetry.ts";
import type { Route } from "./router.ts";

const PLAIN = "text/plain";
const HTML = "text/html";
const JSON_TYPE = "application/json";

/** The page itself limits its sources. These rules have an effect only in a header (CSP level 3, section 3.3). */
const PAGE_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** A short response that is not JSON-RPC. */
interface PlainResponse {
  readonly status: number;
  readonly type: typeof PLAIN | typeof HTML | typeof JSON_TYPE;
  readonly text: string;
  /** Value of the Allow header; no header by default. */
  readonly allow?: string | undefined;
}

export interface PlainResponsesOptions {
  /** Returns the JSON text of `GET /`. */
  about(): string;
  /** HTML of `GET /` for a browser. */
  readonly page?: string | undefined;
  /** Returns the JSON text of `GET /status.json`. */
  status?(): Promise<string>;
  /** Returns the header names and values of every response, in one flat list. */
  commonHeaders(request: IncomingMessage): readonly string[];
  readonly cors: Cors;
}

/** `/` belongs to forebay even without an endpoint: with several chains it has only the info page. */
export const isOurs = ({ path, endpoint }: Route): boolean => endpoint !== undefined || path === "/";

const PASSED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const allowedMethods = ({ path, endpoint }: Route): string =>
  [endpoint && "POST", path === "/" && "GET, HEAD", "OPTIONS"].filter(Boolean).join(", ");

/** Writes every response that is not JSON-RPC: info pages, health, CORS preflights, and paths that are not served. */
export class PlainResponses {
  readonly #options: PlainResponsesOptions;
  readonly #telemetry: HttpTelemetry;

  constructor(options: PlainResponsesOptions, telemetry: HttpTelemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
  }

  /** Serves `GET /` and `GET /status.json`. Returns false for any other request. If keys are configured, the server requires one before. */
  servePage(path: string, request: IncomingMessage, response: ServerResponse): boolean {
    const isPage = path === "/" || (path === "/status.json" && this.#options.status !== undefined);
    if (!isPage || (request.method !== "GET" && request.method !== "HEAD")) {
      return false;
    }
    if (path === "/") {
      this.#sendAbout(request, response);
    } else {
      void this.#sendStatus(request, response);
    }
    return true;
  }

  sendHealth(isReady: boolean, request: IncomingMessage, response: ServerResponse): void {
    const plain = isReady ? { status: 200, text: "ok\n" } : { status: 503, text: "not ready\n" };
    this.#send(request, response, { ...plain, type: PLAIN });
  }

  sendPreflight(route: Route, { headers }: IncomingMessage, response: ServerResponse): void {
    this.#telemetry.countResponse(204);
    response.writeHead(204, [...this.#options.cors.preflight(headers), "Allow", allowedMethods(route)]).end();
  }

  /** Rejects a request to a path with another method, or to one where nothing is served. `paths` are those of the chains. */
  rejectPath(route: Route, paths: Iterable<string>, request: IncomingMessage, response: ServerResponse): void {
    const isWrongMethod = route.endpoint !== undefined || (route.path === "/" && request.method !== "POST");
    this.#send(
      request,
      response,
      isWrongMethod
        ? { status: 405, type: PLAIN, text: "JSON-RPC is sent by POST\n", allow: allowedMethods(route) }
        : { status: 404, type: PLAIN, text: `nothing is served at this path; chains: ${[...paths].join(", ")}\n` },
    );
  }

  /** A target would return the headers of the request, with those that a proxy in front has added (RFC 9110, section 9.3.8). */
  rejectTrace(route: Route, request: IncomingMessage, response: ServerResponse): void {
    const allow = route.passthrough === undefined ? allowedMethods(route) : PASSED_METHODS;
    this.#send(request, response, { status: 405, type: PLAIN, text: "TRACE is not served\n", allow });
  }

  /** Counts and writes one response. */
  #send(request: IncomingMessage, response: ServerResponse, { status, type, text, allow }: PlainResponse): void {
    this.#telemetry.countResponse(status);
    const headers = [
      "Content-Type",
      type === HTML ? `${HTML}; charset=utf-8` : type,
      "Content-Length",
      String(Buffer.byteLength(text)),
      ...this.#options.commonHeaders(request),
    ];
    if (type === HTML) {
      headers.push("Vary", "Accept", "Content-Security-Policy", PAGE_POLICY, "X-Content-Type-Options", "nosniff");
    }
    if (type !== PLAIN) {
      headers.push("Cache-Control", "no-store");
    }
    if (allow !== undefined) {
      headers.push("Allow", allow);
    }
    response.writeHead(status, headers).end(request.method === "HEAD" ? undefined : text);
  }

  #sendAbout(request: IncomingMessage, response: ServerResponse): void {
    const { page } = this.#options;
    const isBrowser = page !== undefined && request.headers.accept?.includes(HTML) === true;
    const { type, text } = isBrowser
      ? ({ type: HTML, text: page } as const)
      : ({ type: JSON_TYPE, text: this.#options.about() } as const);
    this.#send(request, response, { status: 200, type, text });
  }

  async #sendStatus(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text: string | undefined;
    try {
      text = await this.#options.status?.();
    } catch (error) {
      this.#telemetry.logBroken(error, "status.json");
    }
    const plain: PlainResponse =
      text === undefined
        ? { status: 500, type: PLAIN, text: "the status cannot be read\n" }
        : { status: 200, type: JSON_TYPE, text };
    this.#send(request, response, plain);
  }
}

export interface Cors {
  /** Returns the headers of any response, as a flat list of names and values. */
  headers(origin: string | undefined): readonly string[];
  /** Returns the headers of the response to a preflight, as a flat list. */
  preflight(headers: IncomingHttpHeaders): readonly string[];
}

const EXPOSED = [
  "Access-Control-Expose-Headers",
  "Cache-Status, x-forebay-pending, x-forebay-head, x-forebay-view, x-forebay-proof, x-forebay-units, x-request-id, Retry-After",
];
const MAX_AGE_SECONDS = 7_200;

const NONE: readonly string[] = [];

/** Header names only. The requested list is copied into the response, so it must not contain anything else. */
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
