import { setImmediate as nextTurn } from "node:timers/promises";
import type { Dispatcher, Pool } from "undici";
import { type MemoryBudget, type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import { Pieces } from "../limits/pieces.ts";
import type { HangWatch, RequestInFlight } from "./hangWatch.ts";

/** Copying this many bytes into new memory takes about 0.3 ms. */
const SLICE_BYTES = 512 * 1024;

/** Larger responses are joined in slices, so that other requests are not delayed. */
const isJoinedInSlices = (bytes: number): boolean => bytes > 2 * SLICE_BYTES;

/** Joins the chunks of a large response. Other work of the event loop runs between the slices. */
const joinInSlices = async (pieces: Pieces): Promise<Buffer> => {
  const joined = Buffer.allocUnsafeSlow(pieces.bytes);
  let at = 0;
  let sliceEnd = SLICE_BYTES;
  for (const chunk of pieces.list()) {
    joined.set(chunk, at);
    at += chunk.length;
    if (at >= sliceEnd) {
      sliceEnd = at + SLICE_BYTES;
      await nextTurn();
    }
  }
  return joined;
};

export interface HttpReply {
  readonly status: number;
  readonly body: Uint8Array;
  readonly retryAfter: string | undefined;
}

/** The reason why a request has no response. */
export class PostError extends Error {
  override readonly name = "PostError";
  readonly reason: "timeout" | "aborted" | "tooLarge" | "overBudget" | "network";

  constructor(reason: PostError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** A longer response is joined from its chunks. A node that announces more than it sends gets at most this much address space. */
const MAX_WHOLE_BYTES = 16 * 1024 * 1024;

/** Called once, unless the request is aborted. */
export type OnReply = (reply: HttpReply | PostError) => void;

export interface HttpPostOptions {
  /** See `RequestInFlight`. */
  readonly isAwaited: boolean;
  readonly maxBytes: number;
  /** Counts the bytes of a response while it is received. */
  readonly memory: MemoryBudget | undefined;
  /** The client that waits for the response; undefined for several clients, or none. */
  readonly clientId: string | undefined;
}

const single = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header;

/** Reports only the code of a network error, because its message may contain an address. */
const networkError = (error: Error): PostError => {
  const code = "code" in error && typeof error.code === "string" ? error.code : "no response";
  return new PostError(code.includes("TIMEOUT") ? "timeout" : "network", code);
};

/** Ends the connection of a request that has failed. Node.js formats the stack of each new error, which costs more than the request. */
const ENDED = new Error("the request has ended");

const noRoom = (): PostError => new PostError("overBudget", "no room for the response");

/** One HTTP request to a node. It reads the response into memory, and calls back once, unless it is aborted. */
export class HttpPost implements Dispatcher.DispatchHandler, RequestInFlight {
  readonly #options: HttpPostOptions;
  readonly #hangWatch: HangWatch;
  #memory: MemoryUse | undefined;
  readonly #pieces = new Pieces();
  /** Receives a large body of known length, so that its chunks are freed one by one. */
  #whole: Buffer | undefined;
  #onReply: OnReply | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #failure: PostError | undefined;
  #bytes = 0;
  #status = 0;
  #retryAfter: string | undefined;

  constructor(options: HttpPostOptions, hangWatch: HangWatch, onReply: OnReply) {
    this.#options = options;
    this.#hangWatch = hangWatch;
    this.#onReply = onReply;
    hangWatch.begin(this);
  }

  get isAwaited(): boolean {
    return this.#options.isAwaited;
  }

  /** Sends the request. Uses undici's `dispatch`, because undici's `request` creates a stream and promises for each response. */
  send(pool: Pool, request: Dispatcher.DispatchOptions): this {
    try {
      pool.dispatch(request, this);
    } catch {
      this.#fail(new PostError("network", "no connection"));
    }
    return this;
  }

  /** Aborts the request. Its callback is not called afterwards. */
  abort(): void {
    this.#onReply = undefined;
    this.#fail(new PostError("aborted", "aborted: no caller is waiting"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The request may have failed while it waited for a connection.
    if (this.#failure) {
      controller.abort(ENDED);
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#hangWatch.recordBytes();
    // The final response follows an informational one.
    if (statusCode < 200) {
      return;
    }
    this.#status = statusCode;
    this.#retryAfter = single(headers["retry-after"]);
    const length = Number(single(headers["content-length"]));
    if (length > UNCOUNTED_BYTES && this.#canFit(length) && length <= MAX_WHOLE_BYTES) {
      this.#whole = Buffer.allocUnsafeSlow(length);
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#hangWatch.recordBytes();
    const start = this.#bytes;
    this.#bytes += chunk.length;
    if (!this.#isAllowed()) {
      return;
    }
    if (this.#whole === undefined) {
      this.#pieces.add(chunk);
    } else {
      this.#whole.set(chunk, start);
    }
  }

  /** Whether a response of this length can be received. It takes no room: the node may never send it. */
  #canFit(length: number): boolean {
    const { memory, clientId } = this.#options;
    if (length > this.#options.maxBytes) {
      this.#fail(this.#tooLarge());
    } else if (memory?.refuse("upstream", clientId, length) !== undefined) {
      this.#fail(noRoom());
    }
    return this.#failure === undefined;
  }

  /** Counts the bytes that have arrived. Ends the request if they are too many. */
  #isAllowed(): boolean {
    if (this.#bytes > this.#options.maxBytes) {
      this.#fail(this.#tooLarge());
    } else if (this.#bytes > UNCOUNTED_BYTES && !this.#hasRoom()) {
      this.#fail(noRoom());
    }
    return this.#failure === undefined;
  }

  #tooLarge(): PostError {
    return new PostError("tooLarge", `response exceeds the limit of ${this.#options.maxBytes} bytes`);
  }

  #hasRoom(): boolean {
    const { memory, clientId } = this.#options;
    this.#memory ??= memory?.open("upstream", clientId);
    return this.#memory?.trySet(this.#bytes) !== false;
  }

  onResponseEnd(): void {
    if (this.#whole !== undefined) {
      this.#endWith(this.#whole.subarray(0, this.#bytes));
      return;
    }
    if (isJoinedInSlices(this.#bytes)) {
      void joinInSlices(this.#pieces).then((body) => this.#endWith(body));
    } else {
      this.#endWith(this.#pieces.join());
    }
  }

  #endWith(body: Uint8Array): void {
    this.#end({ status: this.#status, retryAfter: this.#retryAfter, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#failure === undefined) {
      this.#end(networkError(error));
    }
  }

  onHang(): void {
    this.#fail(new PostError("timeout", "the node does not respond"));
  }

  /** Ends the request with this error. */
  #fail(error: PostError): void {
    this.#failure = error;
    this.#pieces.clear();
    this.#whole = undefined;
    this.#end(error);
    this.#controller?.abort(ENDED);
  }

  #end(reply: HttpReply | PostError): void {
    this.#hangWatch.end(this);
    this.#memory?.end();
    const onReply = this.#onReply;
    this.#onReply = undefined;
    onReply?.(reply);
  }
}
