import { systemClock } from "../core/clock.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import type { TraceHeaders } from "../core/trace.ts";
import { type Call, paramsJsonOf } from "../jsonrpc/call.ts";
import { overBudget } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { connectWithin } from "./connectWithin.ts";
import { HangWatch } from "./hangWatch.ts";
import { LivenessProbe } from "./livenessProbe.ts";
import { parseBatchResponse, parseNodeResponse } from "./nodeResponse.ts";
import { type NodeUrl, parseNodeUrl } from "./nodeUrl.ts";
import { type HttpReply, type Post, PostError, postJson } from "./postJson.ts";
import { checkJson, parseRetryAfter, ReplyReader } from "./replyReader.ts";
import { Pool } from "./undici.ts";

export interface NodeClientOptions {
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly maxResponseBytes: number;
  /** Counts the bytes of responses while they are received. */
  readonly memory?: MemoryBudget | undefined;
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
  readonly traceHeaders?: TraceHeaders | undefined;
  /** Applies if it is lower than the client's limit. */
  readonly maxBytes?: number | undefined;
  /** The client that waits for the response; undefined for several clients, or none. */
  readonly clientId?: string | undefined;
  /** The caller rejects a result that is not one JSON value. */
  readonly isVerified: boolean;
}

/** The outcomes of a batch, in the order of its calls; undefined for a call that has no response. */
export type BatchOutcomes = readonly (Uint8Array | NodeError | undefined)[];

/** One node's HTTP endpoint. Every failure is a NodeError. A callback is called once, unless the request is aborted. */
export interface NodeClient {
  /** The node responds neither to requests nor to probes. */
  readonly isHung: boolean;
  /** Sends one call. Its outcome is the UTF-8 JSON text of the result. */
  call(call: Call, options: SendOptions, onOutcome: (outcome: Uint8Array | NodeError) => void): Post;
  /** Sends several calls in one HTTP request. The outcome is one error if the node answered no call. */
  batch(calls: readonly Call[], options: SendOptions, onOutcomes: (outcomes: BatchOutcomes | NodeError) => void): Post;
  createError(kind: NodeErrorKind, message: string): NodeError;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 1_000;
/** The code of undici's error if undici itself closed the connection, for example because it was idle. */
const CLOSED_BY_CLIENT = "UND_ERR_INFO";
const SINGLE_ID = 1;

const encode = (call: Call, id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(call.method)},"params":${paramsJsonOf(call)}}`;

const encodeBatch = (calls: readonly Call[]): string => {
  let text = "";
  for (let index = 0; index < calls.length; index++) {
    const call = calls[index];
    if (call !== undefined) {
      text += (index === 0 ? "[" : ",") + encode(call, index);
    }
  }
  return `${text}]`;
};

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

/** Creates the error of a response that forebay has no room for. No other node would help. */
export const budgetError = (node: string): NodeError => {
  const { message, status, retryAfterSeconds = 1 } = overBudget();
  return new NodeError("cancelled", node, message, { status, retryAfterSeconds });
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
    this.#replies = new ReplyReader({ name: options.name, endpoint, verifies });
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

  call(call: Call, options: SendOptions, onOutcome: (outcome: Uint8Array | NodeError) => void): Post {
    const onReply = (reply: HttpReply | PostError): void =>
      onOutcome(
        reply instanceof PostError
          ? this.#postFailure(reply)
          : this.#replies.read(parseNodeResponse(reply.body, options.isVerified), reply, SINGLE_ID),
      );
    return this.#post(encode(call, SINGLE_ID), options, onReply, call.write);
  }

  batch(calls: readonly Call[], options: SendOptions, onOutcomes: (outcomes: BatchOutcomes | NodeError) => void): Post {
    return this.#post(encodeBatch(calls), options, (reply) =>
      onOutcomes(reply instanceof PostError ? this.#postFailure(reply) : this.#readBatch(calls.length, options, reply)),
    );
  }

  createError(kind: NodeErrorKind, message: string): NodeError {
    return this.#replies.createError(kind, message);
  }

  async close(): Promise<void> {
    this.#hangWatch.close();
    await Promise.all([this.#pool.destroy(), this.#probe.close()]);
  }

  #readBatch(calls: number, { isVerified }: SendOptions, http: HttpReply): BatchOutcomes | NodeError {
    const responses = parseBatchResponse(http.body);
    if (!responses) {
      return this.#batchError(http);
    }
    // Most nodes respond in the order of the calls, and some in another.
    const isInOrder = responses.every((response, index) => response?.id === String(index));
    const byId = isInOrder ? undefined : new Map(responses.map((response) => [response?.id, response]));
    const { name } = this.#options;
    return Array.from({ length: calls }, (_, index) => {
      const response = byId === undefined ? responses[index] : byId.get(String(index));
      if (response === undefined) {
        return undefined;
      }
      const outcome = this.#replies.read(response, http, index);
      return this.#verifies && !isVerified ? checkJson(name, outcome) : outcome;
    });
  }

  /** Sends one HTTP request. */
  #post(
    body: string,
    { traceHeaders, maxBytes, clientId }: SendOptions,
    onReply: (reply: HttpReply | PostError) => void,
    isWrite = false,
  ): Post {
    const { maxResponseBytes, memory } = this.#options;
    return postJson(
      this.#pool,
      {
        path: this.#path,
        headers: traceHeaders === undefined ? this.#headers : { ...this.#headers, ...traceHeaders },
        body,
        maxBytes: Math.min(maxBytes ?? maxResponseBytes, maxResponseBytes),
        isWrite,
        hangWatch: this.#hangWatch,
        memory,
        clientId,
      },
      (reply) => {
        if (!(reply instanceof PostError)) {
          this.#readRetryAfter(reply);
        }
        onReply(reply);
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

  #postFailure({ reason, message }: PostError): NodeError {
    if (reason === "overBudget") {
      return budgetError(this.#options.name);
    }
    const kind = reason === "network" ? "unreachable" : reason === "aborted" ? "cancelled" : reason;
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
