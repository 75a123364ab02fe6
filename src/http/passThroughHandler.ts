import type {
  ClientRequest,
  Agent as HttpAgent,
  IncomingHttpHeaders,
  IncomingMessage,
  ServerResponse,
} from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import type httpProxy from "http-proxy";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { PassThrough } from "./endpoint.ts";

/** Headers for one connection only (RFC 9110, section 7.6.1; RFC 2616, section 13.5.1). */
const HOP_BY_HOP = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/** Removes hop-by-hop headers, `Proxy-*` headers, and the headers that `Connection` names. */
const removeHopByHop = (headers: IncomingHttpHeaders): void => {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  for (const name of [...HOP_BY_HOP, ...named]) {
    delete headers[name];
  }
  for (const name of Object.keys(headers)) {
    if (name.startsWith("proxy-")) {
      delete headers[name];
    }
  }
};

/** Whether a path has a segment `..` after decoding. A backslash counts as a slash, because some servers read it so. */
const leavesBase = (target: string): boolean => {
  const [path = ""] = target.split(/[?#]/, 1);
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // A target may decode such a path in its own way.
    return true;
  }
  // Some servers ignore the parameters of a segment: `..;a=b`.
  return decoded.split(/[\\/]/).some((segment) => segment.split(";", 1)[0] === "..");
};

const require = createRequire(import.meta.url);
/** Loaded if pass-through is configured. */
const loadProxy = (): typeof import("http-proxy") => require("http-proxy");

const createAgent = (target: string): HttpAgent => {
  const { Agent } = process.getBuiltinModule(target.startsWith("https:") ? "node:https" : "node:http");
  return new Agent({ keepAlive: true });
};

/** The reason of a failure: a refused request, a target that cannot be reached, or one that hangs. */
type PassThroughFailure = "path" | "length" | "unreachable" | "timeout";

interface PassThroughOptions {
  readonly chain: string;
  readonly target: string;
  /** Limit for connecting, and for the time without a byte afterwards. */
  readonly timeoutMs: number;
  readonly telemetry: Telemetry;
}

interface FailureResponse {
  readonly status: number;
  readonly text: string;
}

const FAILURES: Readonly<Record<PassThroughFailure, FailureResponse>> = {
  path: { status: 400, text: "the path must not contain '..'\n" },
  length: { status: 411, text: "a body of this method needs Content-Length\n" },
  unreachable: { status: 502, text: "the target of this path cannot be reached\n" },
  timeout: { status: 504, text: "the target of this path did not respond in time\n" },
};

/** http-proxy sets `Content-Length: 0` for these methods, and would send a chunked body after it. */
const WITHOUT_CHUNKS = new Set(["DELETE", "OPTIONS"]);

class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/** Ends a request to the target that does not connect, or has no traffic, for `timeoutMs`. */
const limitTime = (request: ClientRequest, timeoutMs: number): void => {
  const end = (): void => {
    request.destroy(new TimeoutError(`no response within ${timeoutMs} ms`));
  };
  // ClientRequest.setTimeout begins once the socket is connected.
  const connecting = setTimeout(end, timeoutMs);
  const stop = (): void => clearTimeout(connecting);
  request.once("close", stop);
  request.once("socket", (socket) => (socket.connecting ? socket.once("connect", stop) : stop()));
  request.setTimeout(timeoutMs, end);
};

const writeText = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, ["Content-Type", "text/plain", "Content-Length", String(text.length)]).end(text);
};

/** Removes the framing of the target's connection. The response to the client gets its own. */
const cleanResponse = (response: IncomingMessage, connection: string): void => {
  removeHopByHop(response.headers);
  response.headers.connection = connection;
};

/** Headers of a response that may repeat the URL of the target, with the key in it. */
const NAMES_A_URL = ["location", "content-location", "refresh", "link"];

/** The parts of the target's URL that no client may see: its host, and a path or a query that may hold a key. */
const secretParts = (target: string): readonly string[] => {
  const { host, pathname, search } = new URL(target);
  return [host, pathname.replace(/\/$/, ""), search].filter((part) => part !== "").map((part) => part.toLowerCase());
};

/** Providers repeat the URL in the text of these. The client cannot use it: the refused credential is that of the operator. */
const REFUSALS = new Set([401, 403]);
const REFUSED_TEXT = "the target of this path refused the request\n";

/** The proxy for requests that are not JSON-RPC. */
export class PassThroughHandler implements PassThrough {
  readonly #options: PassThroughOptions;
  readonly #secretParts: readonly string[];
  readonly #agent: HttpAgent;
  readonly #proxy: httpProxy<IncomingMessage, ServerResponse>;
  /** Clients that get a response of the target. Nothing of forebay may be written to them. */
  readonly #begun = new WeakSet<ServerResponse>();

  constructor(options: PassThroughOptions) {
    const { target } = options;
    this.#options = options;
    this.#secretParts = secretParts(target);
    this.#agent = createAgent(target);
    this.#proxy = loadProxy().createProxyServer({ target, changeOrigin: true, agent: this.#agent, xfwd: true });
    this.#proxy.on("proxyReq", (sent, _, response) => this.#onSent(sent, response));
    this.#proxy.on("proxyRes", (received, request, response) => this.#onReceived(received, request, response));
  }

  web(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
    const isChunked = request.headers["transfer-encoding"] !== undefined;
    const refused = this.#refusal(request, isChunked);
    if (refused !== undefined) {
      this.#fail(response, refused, undefined);
      return;
    }
    removeHopByHop(request.headers);
    if (isChunked) {
      request.headers["transfer-encoding"] = "chunked";
    }
    // The server has answered it.
    delete request.headers.expect;
    const source = body === undefined ? {} : { buffer: Readable.from(body.length === 0 ? [] : [body]) };
    this.#proxy.web(request, response, source, (error) => this.#onError(response, error));
  }

  close(): void {
    this.#proxy.close();
    this.#agent.destroy();
  }

  #refusal({ url = "/", method = "GET" }: IncomingMessage, isChunked: boolean): PassThroughFailure | undefined {
    if (leavesBase(url)) {
      return "path";
    }
    return isChunked && WITHOUT_CHUNKS.has(method) ? "length" : undefined;
  }

  #onSent(sent: ClientRequest, response: ServerResponse): void {
    limitTime(sent, this.#options.timeoutMs);
    // http-proxy ends the request only if the client disconnects while it sends its body.
    response.once("close", () => sent.destroy());
  }

  #onReceived(received: IncomingMessage, _: IncomingMessage, response: ServerResponse): void {
    this.#begun.add(response);
    if (REFUSALS.has(received.statusCode ?? 0)) {
      received.resume();
      writeText(response, received.statusCode ?? 0, REFUSED_TEXT);
      return;
    }
    cleanResponse(received, response.shouldKeepAlive ? "keep-alive" : "close");
    this.#removeSecrets(received.headers);
    received.once("close", () => {
      if (!received.complete) {
        response.destroy();
      }
    });
  }

  /** Removes headers that name the target. */
  #removeSecrets(headers: IncomingHttpHeaders): void {
    for (const name of NAMES_A_URL) {
      const text = String(headers[name] ?? "").toLowerCase();
      if (this.#secretParts.some((part) => text.includes(part))) {
        delete headers[name];
      }
    }
  }

  #onError(response: ServerResponse, error: Error): void {
    if (response.destroyed) {
      return;
    }
    if (this.#begun.has(response)) {
      response.destroy();
    } else {
      this.#fail(response, error instanceof TimeoutError ? "timeout" : "unreachable", error);
    }
  }

  /** Counts a request that failed, and not one whose client disconnected. */
  #count(reason: PassThroughFailure, error: Error | undefined): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.passThroughFailures.inc({ chain, reason });
    if (error !== undefined) {
      telemetry.log.warn({ err: error, chain }, "passing through failed");
    }
  }

  /** The response does not contain the target's address. */
  #fail(response: ServerResponse, reason: PassThroughFailure, error: Error | undefined): void {
    this.#count(reason, error);
    const { status, text } = FAILURES[reason];
    this.#begun.add(response);
    writeText(response, status, text);
  }
}
