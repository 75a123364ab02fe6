import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpTelemetry } from "./httpTelemetry.ts";

export const PLAIN = "text/plain";
const HTML = "text/html";
const JSON_TYPE = "application/json";

/** The page itself limits its sources. These rules have an effect only in a header (CSP level 3, section 3.3). */
const PAGE_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** A short response that is not JSON-RPC. */
export interface PlainResponse {
  readonly status: number;
  readonly type: typeof PLAIN | typeof HTML | typeof JSON_TYPE;
  readonly text: string;
  /** Value of the Allow header; no header by default. */
  readonly allow?: string | undefined;
}

export interface InfoPagesOptions {
  /** Returns the JSON text of `GET /`. */
  about(): string;
  /** HTML of `GET /` for a browser. */
  readonly page?: string | undefined;
  /** Returns the JSON text of `GET /status.json`. */
  status?(): Promise<string>;
  /** Returns the header names and values of every response, in one flat list. */
  commonHeaders(request: IncomingMessage): readonly string[];
}

/** The pages. If keys are configured, the server requires one before it calls this. */
export class InfoPages {
  readonly #options: InfoPagesOptions;
  readonly #telemetry: HttpTelemetry;

  constructor(options: InfoPagesOptions, telemetry: HttpTelemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
  }

  /** Serves `GET /` and `GET /status.json`. Returns false for any other request. */
  serve(path: string, request: IncomingMessage, response: ServerResponse): boolean {
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

  /** Counts and writes one response. */
  send(request: IncomingMessage, response: ServerResponse, { status, type, text, allow }: PlainResponse): void {
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
    this.send(request, response, { status: 200, type, text });
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
    this.send(request, response, plain);
  }
}
