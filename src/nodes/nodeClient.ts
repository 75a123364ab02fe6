import { Pool } from "undici";
import { NodeError } from "../core/node.ts";
import { type Call, paramsTextOf } from "../jsonrpc/call.ts";
import { parseBatchResponse, parseNodeResponse } from "./nodeResponse.ts";
import { type NodeUrl, parseNodeUrl } from "./nodeUrl.ts";
import { type HttpReply, PostError, postJson } from "./postJson.ts";
import { checkJson, createReplyReader, parseRetryAfter, type ReplyReader } from "./replyReader.ts";

export interface NodeClientOptions {
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly maxResponseBytes: number;
  /** Whether ids, statuses and error objects are checked. Default: true. */
  readonly verifies?: boolean;
  /** The node sent Retry-After. */
  readonly onRetryAfter?: (seconds: number) => void;
  /** The node closed a connection, or none could be opened: the node may have been restarted. */
  readonly onLost?: () => void;
}

export interface SendOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly traceparent?: string | undefined;
  /** Applies if it is lower than the client's limit. */
  readonly maxBytes?: number | undefined;
}

/** One node's HTTP endpoint. Every failure is a NodeError. */
export interface NodeClient {
  /**
   * Returns the UTF-8 JSON text of the result. `isVerified`: the caller rejects a result that is not one JSON value.
   */
  call(call: Call, options: SendOptions, isVerified?: boolean): Promise<Uint8Array>;
  /** Sends several calls in one HTTP request. Returns one outcome per call, in order. Rejects if the node answered no call. */
  batch(calls: readonly Call[], options: SendOptions): Promise<(Uint8Array | NodeError)[]>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** The code of undici's error if undici itself closed the connection, for example because it was idle. */
const CLOSED_BY_CLIENT = "UND_ERR_INFO";
const SINGLE_ID = 1;

const encode = (call: Call, id: number): Uint8Array[] => [
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(call.method)},"params":`),
  paramsTextOf(call),
  Buffer.from("}"),
];

const createPool = ({ origin }: NodeUrl, { concurrency, onLost }: NodeClientOptions): Pool => {
  const pool = new Pool(origin, {
    connections: concurrency,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // Each request has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  pool.on("disconnect", (_origin, _targets, error) => {
    if (!("code" in error) || error.code !== CLOSED_BY_CLIENT) {
      onLost?.();
    }
  });
  return pool;
};

class HttpNodeClient implements NodeClient {
  readonly #options: NodeClientOptions;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #verifies: boolean;
  readonly #replies: ReplyReader;
  readonly #pool: Pool;

  constructor(options: NodeClientOptions) {
    const endpoint = parseNodeUrl(options.url, options.headers);
    const verifies = options.verifies ?? true;
    this.#options = options;
    this.#path = endpoint.path;
    this.#headers = { ...endpoint.headers, "content-type": "application/json" };
    this.#verifies = verifies;
    this.#replies = createReplyReader({ name: options.name, endpoint, verifies });
    this.#pool = createPool(endpoint, options);
  }

  call(call: Call, send: SendOptions, isVerified = false): Promise<Uint8Array> {
    return this.#post(encode(call, SINGLE_ID), send, (http) => {
      const result = this.#replies.read(parseNodeResponse(http.body, isVerified), http, SINGLE_ID);
      if (result instanceof NodeError) {
        throw result;
      }
      return result;
    });
  }

  batch(calls: readonly Call[], send: SendOptions): Promise<(Uint8Array | NodeError)[]> {
    const items = calls.flatMap((call, index) => [Buffer.from(index === 0 ? "[" : ","), ...encode(call, index)]);
    return this.#post([...items, Buffer.from("]")], send, (http) => this.#readBatch(calls, http));
  }

  #readBatch(calls: readonly Call[], http: HttpReply): (Uint8Array | NodeError)[] {
    const responses = parseBatchResponse(http.body);
    if (!responses) {
      throw this.#batchError(http);
    }
    const byId = new Map(responses.map((response) => [response?.id, response]));
    const outcomes = calls.map((_, index) => this.#replies.read(byId.get(`${index}`), http, index));
    const { name } = this.#options;
    return this.#verifies ? outcomes.map((outcome) => checkJson(name, outcome)) : outcomes;
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  /** Sends one HTTP request, and applies `read` to its response. */
  #post<T>(
    parts: Uint8Array[],
    { signal, timeoutMs, traceparent, maxBytes }: SendOptions,
    read: (http: HttpReply) => T,
  ): Promise<T> {
    const { maxResponseBytes } = this.#options;
    const posted = postJson(this.#pool, {
      path: this.#path,
      headers: traceparent === undefined ? this.#headers : { ...this.#headers, traceparent },
      body: Buffer.concat(parts),
      signal,
      timeoutMs,
      maxBytes: Math.min(maxBytes ?? maxResponseBytes, maxResponseBytes),
    });
    return posted.then(
      (http) => {
        this.#readRetryAfter(http);
        return read(http);
      },
      (error: unknown) => {
        throw this.#postFailure(error);
      },
    );
  }

  #readRetryAfter({ status, retryAfter }: HttpReply): void {
    if (status !== 429 && status !== 503) {
      return;
    }
    const seconds = parseRetryAfter(retryAfter);
    if (seconds !== undefined) {
      this.#options.onRetryAfter?.(seconds);
    }
  }

  #postFailure(error: unknown): NodeError {
    if (!(error instanceof PostError)) {
      return this.#replies.createError("unreachable", "no connection");
    }
    const { reason, message } = error;
    const kind = reason === "network" ? "unreachable" : reason === "aborted" ? "other" : reason;
    return this.#replies.createError(kind, message);
  }

  /** A single response to a batch is an error of all its calls, whatever its id. */
  #batchError(http: HttpReply): NodeError {
    const response = parseNodeResponse(http.body);
    const outcome = this.#replies.read(response && { ...response, id: `${SINGLE_ID}` }, http, SINGLE_ID);
    if (outcome instanceof NodeError) {
      return outcome;
    }
    return this.#replies.createError("invalidAnswer", "the response to a batch is not a list");
  }
}

/** Creates the client of one node's HTTP endpoint. It must be closed. */
export const createNodeClient = (options: NodeClientOptions): NodeClient => new HttpNodeClient(options);
