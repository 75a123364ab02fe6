import { Pool } from "undici";
import { NodeError } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { parseBatchResponse, parseNodeResponse } from "./nodeResponse.ts";
import { parseNodeUrl } from "./nodeUrl.ts";
import { checkJson, createOutcomes, parseRetryAfter } from "./outcome.ts";
import { type HttpReply, PostError, postJson } from "./postJson.ts";

export interface NodeClientOptions {
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly maxResponseBytes: number;
  /** Whether ids, statuses and error objects are checked; default: they are. */
  readonly verifies?: boolean;
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
export interface NodeClient {
  /** The UTF-8 JSON text of the result. */
  call(call: Call, options: SendOptions): Promise<Uint8Array>;
  /** Several calls in one HTTP request; one outcome for each, in their order. Rejects where the node answered none of them. */
  batch(calls: readonly Call[], options: SendOptions): Promise<(Uint8Array | NodeError)[]>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** undici closed the connection itself, e.g. because it was idle. */
const CLOSED_HERE = "UND_ERR_INFO";
const SINGLE_ID = 1;

const encode = (call: Call, id: number): Uint8Array[] => [
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(call.method)},"params":`),
  call.paramsText,
  Buffer.from("}"),
];

export const createNodeClient = (options: NodeClientOptions): NodeClient => {
  const { name, maxResponseBytes } = options;
  const endpoint = parseNodeUrl(options.url, options.headers);
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

  const verifies = options.verifies ?? true;
  const { of: outcome, noAnswer } = createOutcomes({ name, endpoint, verifies });

  /** One answer to a whole batch is an error of all its calls, whatever its id. */
  const ofWhole = (http: HttpReply): NodeError => {
    const whole = parseNodeResponse(http.body);
    const found = outcome(whole && { ...whole, id: `${SINGLE_ID}` }, http, SINGLE_ID);
    return found instanceof NodeError ? found : noAnswer("invalidAnswer", "the answer to a batch is no list");
  };

  const post = async (parts: Uint8Array[], { signal, timeoutMs, traceparent }: SendOptions): Promise<HttpReply> => {
    try {
      const http = await postJson(pool, {
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
      if (!(error instanceof PostError)) {
        throw noAnswer("unreachable", "no connection");
      }
      const kind = error.reason === "network" ? "unreachable" : error.reason === "aborted" ? "other" : error.reason;
      throw noAnswer(kind, error.message);
    }
  };

  return {
    call: async (call, send) => {
      const http = await post(encode(call, SINGLE_ID), send);
      const result = outcome(parseNodeResponse(http.body), http, SINGLE_ID);
      if (result instanceof NodeError) {
        throw result;
      }
      return result;
    },
    batch: async (calls, send) => {
      const items = calls.flatMap((call, index) => [Buffer.from(index === 0 ? "[" : ","), ...encode(call, index)]);
      const http = await post([...items, Buffer.from("]")], send);
      const answers = parseBatchResponse(http.body);
      if (!answers) {
        throw ofWhole(http);
      }
      const byId = new Map(answers.map((answer) => [answer?.id, answer]));
      const outcomes = calls.map((_, index) => outcome(byId.get(`${index}`), http, index));
      return verifies ? outcomes.map((each) => checkJson(name, each)) : outcomes;
    },
    close: () => pool.destroy(),
  };
};
