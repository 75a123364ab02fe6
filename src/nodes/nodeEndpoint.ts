import type { Dispatcher } from "undici";
import { systemClock } from "../core/clock.ts";
import type { CallScope } from "../core/context.ts";
import type { NodeError } from "../core/node.ts";
import { type Call, paramsJsonOf } from "../jsonrpc/call.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { HangWatch, LivenessProbe } from "./hangWatch.ts";
import { HttpPost, type HttpReply, type PostError } from "./httpPost.ts";
import { type NodeConfig, parseNodeUrl, type TransportOptions } from "./nodeConfig.ts";
import { NodeErrors } from "./nodeErrors.ts";
import { type BatchOutcomes, ReplyReader } from "./replyReader.ts";
import { connectWithin, Pool } from "./undici.ts";

/** The node, as its endpoint uses it. */
export interface EndpointOwner {
  /** Whether another node can answer. If not, requests wait for this node even while it hangs. */
  hasOther(): boolean;
  /** The node sent Retry-After. */
  onRetryAfter(seconds: number): void;
  /** The node closed a connection, or none could be opened: the node may have been restarted. */
  onLost(): void;
  /** The node has begun to hang, or has responded again. */
  onHang(isHung: boolean): void;
}

/** A call of an HTTP request. */
interface PostedCall {
  readonly call: Call;
  readonly scope: Pick<CallScope, "traceHeaders" | "maxBytes" | "caller">;
  /** The caller rejects a result that is not one JSON value. */
  readonly isCheckedLater: boolean;
}

/** The request of a call. An abort calls nobody back. */
type CancellablePost = Pick<HttpPost, "abort">;

export const DEFAULT_CONCURRENCY = 256;
const DEFAULT_MAX_RESPONSE_BYTES = 150_000_000;
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

const createPool = (origin: string, connections: number, onLost: () => void): Pool => {
  const pool = new Pool(origin, {
    connections,
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
  readonly errors: NodeErrors;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #maxResponseBytes: number;
  readonly #memory: MemoryBudget | undefined;
  readonly #owner: EndpointOwner;
  readonly #replies: ReplyReader;
  readonly #pool: Pool;
  readonly #probe: LivenessProbe;
  readonly #hangWatch: HangWatch;

  constructor(
    { name, url, headers, concurrency = DEFAULT_CONCURRENCY }: NodeConfig,
    { verify = "off", maxResponseBytes = DEFAULT_MAX_RESPONSE_BYTES, memory }: TransportOptions,
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
    this.#pool = createPool(origin, concurrency, () => owner.onLost());
    const probe = new LivenessProbe({ origin, path, headers: this.#headers });
    this.#probe = probe;
    this.#hangWatch = new HangWatch({
      probe: () => probe.send(),
      hasOther: () => owner.hasOther(),
      onChange: (isHung) => owner.onHang(isHung),
      clock: systemClock,
    });
  }

  /** The node responds neither to requests nor to probes. */
  get isHung(): boolean {
    return this.#hangWatch.isHung;
  }

  /** Sends one call. Its outcome is the UTF-8 JSON text of the result. */
  call(
    { call, scope, isCheckedLater }: PostedCall,
    onOutcome: (outcome: Uint8Array | NodeError) => void,
  ): CancellablePost {
    const { maxBytes = this.#maxResponseBytes, caller } = scope;
    const post = new HttpPost(
      {
        isWrite: call.write === true,
        maxBytes: Math.min(maxBytes, this.#maxResponseBytes),
        memory: this.#memory,
        clientId: caller?.clientId,
      },
      this.#hangWatch,
      (reply) => {
        this.#readRetryAfter(reply);
        onOutcome(this.#replies.readOne(reply, SINGLE_ID, isCheckedLater));
      },
    );
    return post.send(this.#pool, this.#request(encode(call, SINGLE_ID), scope));
  }

  /** Sends several calls in one HTTP request. The outcome is one error if the node answered no call. */
  batch(calls: readonly PostedCall[], onOutcomes: (outcomes: BatchOutcomes | NodeError) => void): CancellablePost {
    const post = new HttpPost(
      { isWrite: false, maxBytes: this.#maxResponseBytes, memory: this.#memory, clientId: undefined },
      this.#hangWatch,
      (reply) => {
        this.#readRetryAfter(reply);
        const isCheckedLater = calls.every((each) => each.isCheckedLater);
        onOutcomes(this.#replies.readBatch(reply, calls.length, isCheckedLater));
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

  #readRetryAfter(reply: HttpReply | PostError): void {
    const seconds = this.#replies.retryAfterSeconds(reply);
    if (seconds !== undefined) {
      this.#owner.onRetryAfter(seconds);
    }
  }
}
