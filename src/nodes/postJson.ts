import type { Dispatcher } from "undici";
import { isJoinedInSlices, joinInSlices } from "./joinChunks.ts";

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
  readonly body: Buffer;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

const single = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header;

/** Reports only the code of a network error, because its message may contain an address. */
const networkError = (error: Error): PostError => {
  const code = "code" in error && typeof error.code === "string" ? error.code : "no response";
  return new PostError(code.includes("TIMEOUT") ? "timeout" : "network", code);
};

/** Reads the response of one request into memory. */
class ResponseReader implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal;
  readonly #maxBytes: number;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.fail(new PostError("aborted", "the client has disconnected"));
  readonly #response = Promise.withResolvers<HttpReply>();
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #failure: PostError | undefined;
  #bytes = 0;
  #status = 0;
  #retryAfter: string | undefined;

  constructor({ signal, maxBytes, timeoutMs }: PostOptions) {
    this.#signal = signal;
    this.#maxBytes = maxBytes;
    this.#timer = setTimeout(
      () => this.fail(new PostError("timeout", `no response within ${Math.round(timeoutMs)} ms`)),
      Math.max(0, Math.ceil(timeoutMs)),
    );
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get response(): Promise<HttpReply> {
    return this.#response.promise;
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
    this.#finish();
    if (isJoinedInSlices(this.#bytes)) {
      void joinInSlices(this.#chunks, this.#bytes).then((body) => this.#resolve(body));
      return;
    }
    const [first] = this.#chunks;
    this.#resolve(this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks, this.#bytes));
  }

  #resolve(body: Uint8Array): void {
    this.#response.resolve({ status: this.#status, retryAfter: this.#retryAfter, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish();
    this.#response.reject(networkError(error));
  }

  /** Ends the request with this error. */
  fail(error: PostError): void {
    this.#failure = error;
    this.#finish();
    this.#response.reject(error);
    this.#controller?.abort(error);
  }

  #finish(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
  }
}

/**
 * Sends one POST and returns the whole response. Rejects with PostError.
 * It uses undici's `dispatch`, because undici's `request` creates a stream for each response.
 */
export const postJson = (dispatcher: Dispatcher, options: PostOptions): Promise<HttpReply> => {
  if (options.signal.aborted) {
    return Promise.reject(new PostError("aborted", "the client has disconnected"));
  }
  const reader = new ResponseReader(options);
  const { path, headers, body } = options;
  try {
    dispatcher.dispatch({ path, method: "POST", headers, body }, reader);
  } catch {
    reader.fail(new PostError("network", "no connection"));
  }
  return reader.response;
};
