import type { Dispatcher } from "undici";

export interface HttpReply {
  readonly status: number;
  readonly body: Uint8Array;
  readonly retryAfter: string | undefined;
}

/** Why an exchange gave no answer. */
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

/** Only the code of a network error is told: its message may hold an address. */
const networkError = (error: Error): PostError => {
  const code = "code" in error && typeof error.code === "string" ? error.code : "no answer";
  return new PostError(code.includes("TIMEOUT") ? "timeout" : "network", code);
};

/** One POST and its whole answer; undici's `dispatch`, as its `request` costs a stream per answer. */
export const postJson = (dispatcher: Dispatcher, options: PostOptions): Promise<HttpReply> => {
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>();
  const { signal, maxBytes } = options;
  if (signal.aborted) {
    return Promise.reject(new PostError("aborted", "the caller has left"));
  }
  let controller: Dispatcher.DispatchController | undefined;
  let failure: PostError | undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  let status = 0;
  let retryAfter: string | undefined;

  const finish = (): void => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  };
  const fail = (error: PostError): void => {
    failure = error;
    finish();
    reject(error);
    controller?.abort(error);
  };
  const onAbort = (): void => fail(new PostError("aborted", "the caller has left"));
  const timer = setTimeout(
    () => fail(new PostError("timeout", `no answer within ${Math.round(options.timeoutMs)} ms`)),
    Math.max(0, Math.ceil(options.timeoutMs)),
  );
  signal.addEventListener("abort", onAbort, { once: true });

  dispatcher.dispatch(
    { path: options.path, method: "POST", headers: options.headers, body: options.body },
    {
      onRequestStart: (started) => {
        controller = started;
        // It may have waited for a connection longer than its caller for it.
        if (failure) {
          started.abort(failure);
        }
      },
      onResponseStart: (_, statusCode, headers) => {
        status = statusCode;
        retryAfter = single(headers["retry-after"]);
      },
      onResponseData: (_, chunk) => {
        bytes += chunk.length;
        if (bytes > maxBytes) {
          fail(new PostError("tooLarge", `response exceeds the limit of ${maxBytes} bytes`));
          return;
        }
        chunks.push(chunk);
      },
      onResponseEnd: () => {
        finish();
        const [first] = chunks;
        resolve({ status, retryAfter, body: chunks.length === 1 && first ? first : Buffer.concat(chunks, bytes) });
      },
      onResponseError: (_, error) => {
        finish();
        reject(networkError(error));
      },
    },
  );
  return promise;
};
