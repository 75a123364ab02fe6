import { Pool } from "undici";
import { NodeError, type NodeErrorKind } from "../chain/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { type NodeAnswer, parseAnswer, parseBatchAnswer } from "./answer.ts";
import { createEndpoint } from "./endpoint.ts";
import { errorKind } from "./errors.ts";
import { ExchangeError, exchange, type HttpAnswer } from "./exchange.ts";
import { asText } from "./jsonScan.ts";

export interface ClientOptions {
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly maxResponseBytes: number;
  /** The node said when it wants to be asked again. */
  readonly onRetryAfter?: (seconds: number) => void;
  /** The node closed a connection, or none could be opened: it may have been restarted. */
  readonly onLost?: () => void;
}

interface SendOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly traceparent?: string | undefined;
}

/** One node's HTTP endpoint. Every failure is a NodeError. */
export interface Client {
  /** The UTF-8 JSON text of the result. */
  call(call: Call, options: SendOptions): Promise<Uint8Array>;
  /** Several calls in one HTTP request; one outcome for each, in their order. Rejects where the node answered none of them. */
  batch(calls: readonly Call[], options: SendOptions): Promise<(Uint8Array | NodeError)[]>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;
const MAX_TOLD_BYTES = 200;
/** undici closed the connection itself, e.g. because it was idle. */
const CLOSED_HERE = "UND_ERR_INFO";
/** A date from a wrong clock must not take a node away for days. */
const MAX_RETRY_AFTER_SECONDS = 3600;

const encode = (call: Call, id: number): Uint8Array[] => [
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(call.method)},"params":`),
  call.paramsText,
  Buffer.from("}"),
];

/** Seconds, or a date (RFC 9110 section 10.2.3). */
const parseRetryAfter = (header: string | undefined): number | undefined => {
  if (header === undefined) {
    return undefined;
  }
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(0, Math.ceil(seconds)), MAX_RETRY_AFTER_SECONDS) : undefined;
};

const STATUSES: Partial<Record<NodeErrorKind, number>> = {
  timeout: 504,
  rateLimited: 429,
  billing: 503,
  unauthorized: 503,
  unreachable: 503,
  invalidAnswer: 503,
};

const parseError = (text: string): { code: number; message: string; data?: unknown } => {
  try {
    const { code, message, data } = JSON.parse(text);
    return {
      code: typeof code === "number" ? code : CODES.SERVER,
      message: typeof message === "string" ? message : "error without a message",
      ...(data !== undefined && { data }),
    };
  } catch {
    return { code: CODES.SERVER, message: "unreadable error" };
  }
};

export const createClient = (options: ClientOptions): Client => {
  const { name, maxResponseBytes } = options;
  const endpoint = createEndpoint(options.url, options.headers);
  const headers = { ...endpoint.headers, "content-type": "application/json" };
  const pool = new Pool(endpoint.origin, {
    connections: options.concurrency,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // Each exchange has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  pool.on("disconnect", (_origin, _targets, error) => {
    if (!("code" in error) || error.code !== CLOSED_HERE) options.onLost?.();
  });

  const noAnswer = (kind: NodeErrorKind, message: string, retryAfterSeconds?: number): NodeError => {
    const status = STATUSES[kind];
    const seconds = retryAfterSeconds ?? (status === 503 || status === 429 ? 1 : undefined);
    const code =
      kind === "rateLimited" ? CODES.RATE_LIMITED : kind === "tooLarge" ? CODES.RESPONSE_TOO_LARGE : CODES.INTERNAL;
    return new NodeError(kind, name, code, `${name}: ${endpoint.redact(message)}`, {
      ...(status !== undefined && { status }),
      ...(seconds !== undefined && { retryAfterSeconds: seconds }),
    });
  };

  const nodesOwn = (error: Uint8Array, http: HttpAnswer): NodeError => {
    const text = asText(error);
    const clean = endpoint.redact(text);
    const { code, message, data } = parseError(clean);
    const kind = errorKind(
      code,
      typeof data === "string" && !data.startsWith("0x") ? `${message} ${data}` : message,
      http.status,
    );
    const seconds = parseRetryAfter(http.retryAfter);
    return new NodeError(kind, name, code, message, {
      data,
      ...(http.status === 429 && { status: 429, retryAfterSeconds: seconds ?? 1 }),
      text: clean === text ? error : Buffer.from(clean),
    });
  };

  /** The node gave no JSON-RPC response: an error page, an empty body, something cut off. */
  const notJsonRpc = ({ status, body, retryAfter }: HttpAnswer): NodeError =>
    noAnswer(
      errorKind(undefined, status === 200 ? "" : asText(body.subarray(0, MAX_TOLD_BYTES)), status),
      status === 200 ? "the answer is no JSON-RPC response" : `HTTP status ${status}`,
      parseRetryAfter(retryAfter),
    );

  const outcome = (answer: NodeAnswer | undefined, http: HttpAnswer): Uint8Array | NodeError => {
    if (!answer) {
      return notJsonRpc(http);
    }
    return "result" in answer ? answer.result : nodesOwn(answer.error, http);
  };

  const post = async (parts: Uint8Array[], { signal, timeoutMs, traceparent }: SendOptions): Promise<HttpAnswer> => {
    try {
      const http = await exchange(pool, {
        path: endpoint.path,
        headers: traceparent === undefined ? headers : { ...headers, traceparent },
        body: Buffer.concat(parts),
        signal,
        timeoutMs,
        maxBytes: maxResponseBytes,
      });
      const seconds = http.status === 429 || http.status === 503 ? parseRetryAfter(http.retryAfter) : undefined;
      if (seconds !== undefined) {
        options.onRetryAfter?.(seconds);
      }
      return http;
    } catch (error) {
      if (!(error instanceof ExchangeError)) {
        throw noAnswer("unreachable", "no connection");
      }
      const kind = error.reason === "network" ? "unreachable" : error.reason === "aborted" ? "other" : error.reason;
      throw noAnswer(kind, error.message);
    }
  };

  return {
    call: async (call, send) => {
      const http = await post(encode(call, 1), send);
      const result = outcome(parseAnswer(http.body), http);
      if (result instanceof NodeError) {
        throw result;
      }
      return result;
    },
    batch: async (calls, send) => {
      const items = calls.flatMap((call, index) => [Buffer.from(index === 0 ? "[" : ","), ...encode(call, index)]);
      const http = await post([...items, Buffer.from("]")], send);
      const answers = parseBatchAnswer(http.body);
      if (!answers) {
        const whole = outcome(parseAnswer(http.body), http);
        throw whole instanceof NodeError ? whole : noAnswer("invalidAnswer", "the answer to a batch is no list");
      }
      const byId = new Map(answers.map((answer) => [answer?.id, answer]));
      return calls.map((_, index) => outcome(byId.get(`${index}`), http));
    },
    close: () => pool.destroy(),
  };
};
