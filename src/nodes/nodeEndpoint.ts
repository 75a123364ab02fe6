import { createRequire } from "node:module";
import type * as Undici from "undici";
import type { Dispatcher } from "undici";
import type { CallScope } from "../core/context.ts";
import type { NodeError } from "../core/node.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import { type Call, paramsJsonOf } from "../jsonrpc/call.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { HangWatch, type WatchedNode } from "./hangWatch.ts";
import { HttpPost, type HttpReply, PostError } from "./httpPost.ts";
import {
  DEFAULT_CONCURRENCY,
  type NodeConfig,
  type NodeUrl,
  parseNodeUrl,
  type TransportOptions,
} from "./nodeConfig.ts";
import { NodeErrors } from "./nodeErrors.ts";
import { type BatchOutcomes, ReplyReader } from "./replyReader.ts";

const require = createRequire(import.meta.url);

/** The index of undici also loads fetch, caches and mocks: 8 MB and 30 ms of each start. */
const Pool: typeof Undici.Pool = require("undici/lib/dispatcher/pool.js");
const Client: typeof Undici.Client = require("undici/lib/dispatcher/client.js");
const buildConnector: typeof Undici.buildConnector = require("undici/lib/core/connect.js");
const { ConnectTimeoutError }: typeof Undici.errors = require("undici/lib/core/errors.js");

/**
 * Creates a connector whose attempts fail after `timeoutMs`. The timer of undici's own limit is late by up to 500 ms.
 * It only closes the socket of an attempt that has failed.
 */
const connectWithin = (timeoutMs: number): Undici.buildConnector.connector => {
  const connect = buildConnector({ allowH2: false, timeout: timeoutMs });
  return (options, callback) => {
    let isEnded = false;
    const onLate = (): void => {
      if (!isEnded) {
        isEnded = true;
        callback(new ConnectTimeoutError(`no connection within ${timeoutMs} ms`), null);
      }
    };
    // After a pause of the event loop, the connection may be open: that is read before the immediate.
    const timer = setTimeout(() => setImmediate(onLate), timeoutMs);
    connect(options, (...result) => {
      if (isEnded) {
        result[1]?.destroy();
        return;
      }
      isEnded = true;
      clearTimeout(timer);
      callback(...result);
    });
  };
};

/** The node, as its endpoint uses it. */
export interface EndpointOwner extends WatchedNode {
  /** The node sent Retry-After. */
  onRetryAfter(seconds: number): void;
  /** The node closed a connection, or none could be opened: the node may have been restarted. */
  onLost(): void;
}

/** A call of an HTTP request. */
interface PostedCall {
  readonly call: Call;
  readonly scope: Pick<CallScope, "traceHeaders" | "maxBytes" | "caller" | "isHeadRead">;
  /** The caller rejects a result that is not one JSON value. */
  readonly isCheckedLater: boolean;
}

/** The request of a call. An abort calls nobody back. */
type CancellablePost = Pick<HttpPost, "abort">;

const CONNECT_TIMEOUT_MS = 1_000;
/** The code of undici's error if undici itself closed the connection, for example because it was idle. */
const CLOSED_BY_CLIENT = "UND_ERR_INFO";
const SINGLE_ID = 1;

const encode = (call: Call, id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(call.method)},"params":${paramsJsonOf(call)}}`;

/** The ids are the positions of the calls. */
const encodeBatch = (calls: readonly PostedCall[]): string => {
  let text = "";
  for (let index = 0; index < calls.length; index++) {
    const posted = calls[index];
    if (posted !== undefined) {
      text += (index === 0 ? "[" : ",") + encode(posted.call, index);
    }
  }
  return `${text}]`;
};

interface PoolListeners {
  readonly onLost: () => void;
  /** A connection was opened, or could not be. */
  readonly onConnect: (isOpen: boolean) => void;
}

const createPool = (origin: string, connections: number, { onLost, onConnect }: PoolListeners): Undici.Pool => {
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    connect: connectWithin(CONNECT_TIMEOUT_MS),
    // Each call has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  pool.on("connect", () => onConnect(true));
  pool.on("connectionError", () => onConnect(false));
  pool.on("disconnect", (_origin, _targets, error) => {
    if (!("code" in error) || error.code !== CLOSED_BY_CLIENT) {
      onLost();
    }
  });
  return pool;
};

/**
 * One node's HTTP endpoint. Every failure is a NodeError. A callback is called once, unless the request is aborted: before this
 * call returns, or later. It must be closed.
 */
export class NodeEndpoint {
  readonly errors: NodeErrors;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #maxResponseBytes: number;
  readonly #memory: MemoryBudget | undefined;
  readonly #owner: EndpointOwner;
  readonly #replies: ReplyReader;
  readonly #pool: Undici.Pool;
  readonly #probe: LivenessProbe;
  readonly #hangWatch: HangWatch;
  /** The last attempt to open a connection succeeded, or a response has arrived since. */
  #hasConnected = true;

  constructor(
    { name, url, headers, concurrency = DEFAULT_CONCURRENCY }: NodeConfig,
    { verify = "off", maxResponseBytes = Number.POSITIVE_INFINITY, memory, clock }: TransportOptions,
    owner: EndpointOwner,
  ) {
    const parsed = parseNodeUrl(url, headers);
    const { origin, path } = parsed;
    this.#path = path;
    this.#headers = { ...parsed.headers, "content-type": "application/json" };
    this.#maxResponseBytes = maxResponseBytes;
    this.#memory = memory;
    this.#owner = owner;
    this.errors = new NodeErrors(name, parsed, verify !== "off");
    this.#replies = new ReplyReader(this.errors, verify !== "off");
    this.#pool = createPool(origin, concurrency, {
      onLost: () => owner.onLost(),
      onConnect: (isOpen) => {
        this.#hasConnected = isOpen;
      },
    });
    this.#probe = new LivenessProbe({ origin, path, headers: this.#headers });
    this.#hangWatch = new HangWatch(owner, this.#probe, clock);
  }

  /** The node responds neither to requests nor to probes. */
  get isHung(): boolean {
    return this.#hangWatch.isHung;
  }

  /** Whether the node can be connected to: a connection is open, or the last attempt was not refused, and had a route and TLS. */
  get isConnectable(): boolean {
    return this.#hasConnected || this.#pool.stats.connected > 0;
  }

  /** Sends one call. Its outcome is the UTF-8 JSON text of the result. */
  call(posted: PostedCall, onOutcome: (outcome: Uint8Array | NodeError) => void): CancellablePost {
    const { call, scope, isCheckedLater } = posted;
    const { maxBytes = this.#maxResponseBytes, caller } = scope;
    const post = new HttpPost(
      {
        isAwaited: call.write === true || scope.isHeadRead === true,
        maxBytes: Math.min(maxBytes, this.#maxResponseBytes),
        memory: this.#memory,
        clientId: caller?.clientId,
      },
      this.#hangWatch,
      (reply) => {
        this.#readReply(reply);
        onOutcome(this.#replies.readOne(reply, SINGLE_ID, posted, isCheckedLater));
      },
    );
    return post.send(this.#pool, this.#request(encode(call, SINGLE_ID), scope));
  }

  /** Sends several calls in one HTTP request. The outcome is one error if the node answered no call. */
  batch(calls: readonly PostedCall[], onOutcomes: (outcomes: BatchOutcomes | NodeError) => void): CancellablePost {
    const isHeadRead = calls[0]?.scope.isHeadRead === true;
    const post = new HttpPost(
      { isAwaited: isHeadRead, maxBytes: this.#maxResponseBytes, memory: this.#memory, clientId: undefined },
      this.#hangWatch,
      (reply) => {
        this.#readReply(reply);
        const isCheckedLater = calls.every((each) => each.isCheckedLater);
        onOutcomes(this.#replies.readBatch(reply, calls, isCheckedLater));
      },
    );
    return post.send(this.#pool, this.#request(encodeBatch(calls), calls[0]?.scope));
  }

  async close(): Promise<void> {
    this.#hangWatch.close();
    await Promise.all([this.#pool.destroy(), this.#probe.close()]);
  }

  #request(body: string, scope: PostedCall["scope"] | undefined): Dispatcher.DispatchOptions {
    const traceHeaders = scope?.traceHeaders;
    const headers = traceHeaders === undefined ? this.#headers : { ...this.#headers, ...traceHeaders };
    return { path: this.#path, method: "POST", headers, body };
  }

  #readReply(reply: HttpReply | PostError): void {
    this.#hasConnected ||= !(reply instanceof PostError);
    const seconds = this.#replies.retryAfterSeconds(reply);
    if (seconds !== undefined) {
      this.#owner.onRetryAfter(seconds);
    }
  }
}

const { connectMs, answerMs } = RETRY_LIMITS.hang;

const PROBE_BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

/** Resolves when a response begins, or at the end of the time limit. Any response counts, whatever its status. */
class ProbeHandler implements Dispatcher.DispatchHandler {
  readonly #outcome = Promise.withResolvers<boolean>();
  #timer = this.#limit(connectMs);

  get outcome(): Promise<boolean> {
    return this.#outcome.promise;
  }

  /** The connection is open. */
  onRequestStart(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#limit(answerMs);
  }

  onResponseStart(): void {
    this.finish(true);
  }

  onResponseData(): void {
    this.finish(true);
  }

  onResponseEnd(): void {
    this.finish(true);
  }

  onResponseError(): void {
    this.finish(false);
  }

  finish(isAnswered: boolean): void {
    clearTimeout(this.#timer);
    this.#outcome.resolve(isAnswered);
  }

  /** After a pause of the event loop, the response may have arrived: it is read before the immediate. */
  #limit(timeoutMs: number): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.finish(false)), timeoutMs);
  }
}

/** Asks a node for its chain id on a connection of its own, so that slow requests do not delay the response. */
export class LivenessProbe {
  readonly #url: Omit<NodeUrl, "redact">;
  #client: Undici.Client | undefined;

  constructor(url: Omit<NodeUrl, "redact">) {
    this.#url = url;
  }

  /** Returns whether a response began within RETRY_LIMITS.hang. Never rejects. */
  async send(): Promise<boolean> {
    const { origin, path, headers } = this.#url;
    this.#client ??= new Client(origin, { pipelining: 1, connect: connectWithin(connectMs) });
    const handler = new ProbeHandler();
    this.#client.dispatch({ path, method: "POST", headers, body: PROBE_BODY }, handler);
    const isAnswered = await handler.outcome;
    if (!isAnswered) {
      await this.close();
    }
    return isAnswered;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.destroy();
  }
}
