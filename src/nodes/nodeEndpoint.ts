import { systemClock } from "../core/clock.ts";
import type { CallScope } from "../core/context.ts";
import type { NodeError, NodeErrorKind } from "../core/node.ts";
import { type Call, paramsJsonOf } from "../jsonrpc/call.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { HangWatch, LivenessProbe } from "./hangWatch.ts";
import { parseNodeUrl } from "./nodeConfig.ts";
import { type BatchOutcomes, ReplyReader } from "./replyReader.ts";
import { type HttpReply, type OnReply, type Post, PostError, ResponseReader } from "./responseReader.ts";
import { connectWithin, Pool } from "./undici.ts";

export interface NodeEndpointOptions {
  /** Name of the node, for errors. */
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly concurrency: number;
  readonly maxResponseBytes: number;
  /** Counts the bytes of responses while they are received. */
  readonly memory?: MemoryBudget | undefined;
  /** Whether ids, statuses and error objects are checked. */
  readonly verifies: boolean;
  /** The node sent Retry-After. */
  readonly onRetryAfter: (seconds: number) => void;
  /** The node closed a connection, or none could be opened: the node may have been restarted. */
  readonly onLost: () => void;
  /** Whether another node can answer. If not, requests wait for this node even while it hangs. */
  readonly hasOther: () => boolean;
  /** The node has begun to hang, or has responded again. */
  readonly onHang: (isHung: boolean) => void;
}

/** A call of an HTTP request. */
interface PostedCall {
  readonly call: Call;
  readonly scope: Pick<CallScope, "traceHeaders" | "maxBytes" | "caller">;
  /** The caller rejects a result that is not one JSON value. */
  readonly isVerified: boolean;
}

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

const createPool = (origin: string, { concurrency, onLost }: NodeEndpointOptions): Pool => {
  const pool = new Pool(origin, {
    connections: concurrency,
    pipelining: 1,
    connect: connectWithin(CONNECT_TIMEOUT_MS),
    // Each call has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
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
  readonly #options: NodeEndpointOptions;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #replies: ReplyReader;
  readonly #pool: Pool;
  readonly #probe: LivenessProbe;
  readonly #hangWatch: HangWatch;

  constructor(options: NodeEndpointOptions) {
    const url = parseNodeUrl(options.url, options.headers);
    const { origin, path } = url;
    this.#options = options;
    this.#path = path;
    this.#headers = { ...url.headers, "content-type": "application/json" };
    this.#replies = new ReplyReader(options.name, url, options.verifies);
    this.#pool = createPool(origin, options);
    const probe = new LivenessProbe({ origin, path, headers: this.#headers });
    this.#probe = probe;
    this.#hangWatch = new HangWatch({
      probe: () => probe.send(),
      hasOther: options.hasOther,
      onChange: options.onHang,
      clock: systemClock,
    });
  }

  /** The node responds neither to requests nor to probes. */
  get isHung(): boolean {
    return this.#hangWatch.isHung;
  }

  /** Sends one call. Its outcome is the UTF-8 JSON text of the result. */
  call({ call, scope, isVerified }: PostedCall, onOutcome: (outcome: Uint8Array | NodeError) => void): Post {
    const onReply = (reply: HttpReply | PostError): void => {
      this.#readRetryAfter(reply);
      onOutcome(this.#replies.readOne(reply, SINGLE_ID, isVerified));
    };
    const { maxResponseBytes, memory } = this.#options;
    const { maxBytes = maxResponseBytes, caller } = scope;
    const limits = { maxBytes: Math.min(maxBytes, maxResponseBytes), memory, clientId: caller?.clientId };
    const reader = new ResponseReader(call.write === true, limits, this.#hangWatch, onReply);
    return this.#post(encode(call, SINGLE_ID), scope, reader);
  }

  /** Sends several calls in one HTTP request. The outcome is one error if the node answered no call. */
  batch(calls: readonly PostedCall[], onOutcomes: (outcomes: BatchOutcomes | NodeError) => void): Post {
    const onReply: OnReply = (reply) => {
      this.#readRetryAfter(reply);
      const isVerified = calls.every((each) => each.isVerified);
      onOutcomes(this.#replies.readBatch(reply, calls.length, isVerified));
    };
    const { maxResponseBytes: maxBytes, memory } = this.#options;
    const reader = new ResponseReader(false, { maxBytes, memory, clientId: undefined }, this.#hangWatch, onReply);
    return this.#post(encodeBatch(calls), calls[0]?.scope ?? {}, reader);
  }

  createError(kind: NodeErrorKind, message: string): NodeError {
    return this.#replies.createError(kind, message);
  }

  async close(): Promise<void> {
    this.#hangWatch.close();
    await Promise.all([this.#pool.destroy(), this.#probe.close()]);
  }

  /** Uses undici's `dispatch`, because undici's `request` creates a stream and promises for each response. */
  #post(body: string, { traceHeaders }: PostedCall["scope"], reader: ResponseReader): Post {
    const headers = traceHeaders === undefined ? this.#headers : { ...this.#headers, ...traceHeaders };
    try {
      this.#pool.dispatch({ path: this.#path, method: "POST", headers, body }, reader);
    } catch {
      reader.fail(new PostError("network", "no connection"));
    }
    return reader;
  }

  #readRetryAfter(reply: HttpReply | PostError): void {
    const seconds = this.#replies.retryAfterSeconds(reply);
    if (seconds !== undefined) {
      this.#options.onRetryAfter(seconds);
    }
  }
}
