import type { Dispatcher } from "undici";

export interface HttpReply {
  readonly status: number;
  readonly body: Uint8Array;
  readonly retryAfter: string | undefined;
}

/** The reason why a request has no response. */
export class PostError extends Error {
  override readonly name = "ExchangeError";
  readonly reason: "timeout" | "aborted" | "tooLarge" | "network";

  constructor(reason: PostError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface PostOptions {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly maxBytes: number;
}

/** A request that is in flight. */
export interface Post {
  /** Aborts the request. Its callback is not called afterwards. */
  abort(): void;
}

type OnReply = (reply: HttpReply | PostError) => void;

const single = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header;

/** Reports only the code of a network error, because its message may contain an address. */
const networkError = (error: Error): PostError => {
  const code = "code" in error && typeof error.code === "string" ? error.code : "no response";
  return new PostError(code.includes("TIMEOUT") ? "timeout" : "network", code);
};

/** Reads the response of one request into memory, and calls back once, unless the request is aborted. */
class ResponseReader implements Dispatcher.DispatchHandler, Post {
  readonly #maxBytes: number;
  readonly #chunks: Buffer[] = [];
  #onReply: OnReply | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #failure: PostError | undefined;
  #bytes = 0;
  #status = 0;
  #retryAfter: string | undefined;

  constructor(maxBytes: number, onReply: OnReply) {
    this.#maxBytes = maxBytes;
    this.#onReply = onReply;
  }

  abort(): void {
    this.#onReply = undefined;
    this.fail(new PostError("aborted", "nobody waits for the response"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The request may have failed while it waited for a connection.
    if (this.#failure) {
      controller.abort(this.#failure);
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = statusCode;
    this.#retryAfter = single(headers["retry-after"]);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      this.fail(new PostError("tooLarge", `response exceeds the limit of ${this.#maxBytes} bytes`));
      return;
    }
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const [first] = this.#chunks;
    const body = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks, this.#bytes);
    this.#end({ status: this.#status, retryAfter: this.#retryAfter, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(networkError(error));
  }

  /** Ends the request with this error. */
  fail(error: PostError): void {
    this.#failure = error;
    this.#end(error);
    this.#controller?.abort(error);
  }

  #end(reply: HttpReply | PostError): void {
    const onReply = this.#onReply;
    this.#onReply = undefined;
    onReply?.(reply);
  }
}

/**
 * Sends one POST and calls `onReply` once with the whole response or with an error, later than this call returns or before.
 * It uses undici's `dispatch`, because undici's `request` creates a stream and promises for each response.
 */
export const postJson = (dispatcher: Dispatcher, options: PostOptions, onReply: OnReply): Post => {
  const { path, headers, body, maxBytes } = options;
  const reader = new ResponseReader(maxBytes, onReply);
  try {
    dispatcher.dispatch({ path, method: "POST", headers, body }, reader);
  } catch {
    reader.fail(new PostError("network", "no connection"));
  }
  return reader;
};
