import { systemClock } from "../core/clock.ts";
import { NodeError } from "../core/node.ts";
import { type Call, paramsTextOf } from "../jsonrpc/call.ts";
import { connectWithin } from "./connectWithin.ts";
import { HangWatch } from "./hangWatch.ts";
import { LivenessProbe } from "./livenessProbe.ts";
import { parseBatchResponse, parseNodeResponse } from "./nodeResponse.ts";
import { type NodeUrl, parseNodeUrl } from "./nodeUrl.ts";
import { type HttpReply, PostError, postJson } from "./postJson.ts";
import { checkJson, createReplyReader, parseRetryAfter, type ReplyReader } from "./replyReader.ts";
import { Pool } from "./undici.ts";

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
  /** Whether another node can answer. Default: no, so that requests wait for this node even while it hangs. */
  readonly hasOther?: () => boolean;
  /** The node has begun to hang, or has responded again. */
  readonly onHang?: (isHung: boolean) => void;
}

export interface SendOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly traceparent?: string | undefined;
}

/** One node's HTTP endpoint. Every failure is a NodeError. */
export interface NodeClient {
  /** The node responds neither to requests nor to probes. */
  readonly isHung: boolean;
  /**
   * Returns the UTF-8 JSON text of the result. `isVerified`: the caller rejects a result that is not one JSON value.
   */
  call(call: Call, options: SendOptions, isVerified?: boolean): Promise<Uint8Array>;
  /** Sends several calls in one HTTP request. Returns one outcome per call, in order. Rejects if the node answered no call. */
  batch(calls: readonly Call[], options: SendOptions): Promise<(Uint8Array | NodeError)[]>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 1_000;
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
    connect: connectWithin(CONNECT_TIMEOUT_MS),
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
  readonly #probe: LivenessProbe;
  readonly #hangWatch: HangWatch;

  constructor(options: NodeClientOptions) {
    const endpoint = parseNodeUrl(options.url, options.headers);
    const verifies = options.verifies ?? true;
    this.#options = options;
    this.#path = endpoint.path;
    this.#headers = { ...endpoint.headers, "content-type": "application/json" };
    this.#verifies = verifies;
    this.#replies = createReplyReader({ name: options.name, endpoint, verifies });
    this.#pool = createPool(endpoint, options);
    const probe = new LivenessProbe({ origin: endpoint.origin, path: endpoint.path, headers: this.#headers });
    this.#probe = probe;
    this.#hangWatch = new HangWatch({
      probe: () => probe.send(),
      hasOther: options.hasOther ?? (() => false),
      onChange: (isHung) => options.onHang?.(isHung),
      clock: systemClock,
    });
  }

  get isHung(): boolean {
    return this.#hangWatch.isHung;
  }

  call(call: Call, send: SendOptions, isVerified = false): Promise<Uint8Array> {
    const readResult = (http: HttpReply): Uint8Array => {
      const result = this.#replies.read(parseNodeResponse(http.body, isVerified), http, SINGLE_ID);
      if (result instanceof NodeError) {
        throw result;
      }
      return result;
    };
    return this.#post(encode(call, SINGLE_ID), send, readResult, call.write);
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

  async close(): Promise<void> {
    this.#hangWatch.close();
    await Promise.all([this.#pool.destroy(), this.#probe.close()]);
  }

  /** Sends one HTTP request, and applies `read` to its response. */
  #post<T>(
    parts: Uint8Array[],
    { signal, timeoutMs, traceparent }: SendOptions,
    read: (http: HttpReply) => T,
    isWrite = false,
  ): Promise<T> {
    const posted = postJson(this.#pool, {
      path: this.#path,
      headers: traceparent === undefined ? this.#headers : { ...this.#headers, traceparent },
      body: Buffer.concat(parts),
      signal,
      timeoutMs,
      isWrite,
      hangWatch: this.#hangWatch,
      maxBytes: this.#options.maxResponseBytes,
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
