import { finished, Readable } from "node:stream";
import type { AuthenticatedCaller, ClientRequest } from "../access/access.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, errorResult, isStream, isWhole } from "../jsonrpc/response.ts";
import { CODES, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { Endpoint, EndpointResponse } from "./endpoint.ts";
import { PostRequest } from "./httpRequest.ts";
import type { HttpTelemetry } from "./httpTelemetry.ts";
import { hasJson, type JsonRpcHandler, tooLarge, wrongType } from "./jsonRpcHandler.ts";
import { answerHeaders, REFUSED } from "./postResponder.ts";
import type { Route } from "./router.ts";

/** A request of this process counts as one of a program on this machine. */
const LOCAL_ADDRESS = "127.0.0.1";

/** A streamed response that nobody reads for this time breaks. */
const READ_TIMEOUT_MS = 30_000;

export interface DirectRequestsOptions {
  readonly maxBodyBytes: number;
  readonly memory?: MemoryBudget | undefined;
  readonly jsonRpc: Pick<JsonRpcHandler, "call" | "rejectedBy" | "nextRequestId">;
  /** Returns the error of a client that is not admitted. */
  admit(request: ClientRequest): Awaitable<AuthenticatedCaller | RpcError>;
  /** Returns the route of an admitted request, or the error if its key may not use the chain. */
  routeOf(admitted: AuthenticatedCaller): Route | RpcError;
}

const clientOf = ({ method, url, headers }: Request): ClientRequest => {
  const { host, pathname, search } = new URL(url);
  return {
    ...{ method, url: pathname + search, socket: { remoteAddress: LOCAL_ADDRESS } },
    headers: { host, ...Object.fromEntries(headers) },
  };
};

const refused = (error: RpcError) => {
  const { status, retryAfterSeconds = status === 429 ? 1 : undefined } = error;
  const headers = status === 401 ? ["WWW-Authenticate", "Bearer"] : [];
  return { ...errorResult(error), cacheStatus: REFUSED, retryAfterSeconds, headers };
};

const invalid = (message: string, status: number): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, `Invalid request: ${message}`, { status });

/** Throws RpcError for a body above the limits. */
const readRequest = async ({ body }: Request, maxBytes: number, post: PostRequest): Promise<Buffer> => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) {
      post.caller.charge?.(1, "invalid");
      throw tooLarge(maxBytes);
    }
    if (!post.holdBody(part.length)) {
      throw overBudget();
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
};

/** A request in flight, until its response is read. */
class RunningRequest {
  readonly post: PostRequest;
  /** Rejects with the reason for which the request breaks. */
  readonly broken: Promise<never>;
  readonly #reject: (reason: unknown) => void;
  readonly #signal: AbortSignal;
  readonly #abort = (): void => this.break(this.#signal.reason);

  constructor(post: PostRequest, signal: AbortSignal) {
    this.post = post;
    const { promise, reject } = Promise.withResolvers<never>();
    this.broken = promise;
    this.#reject = reject;
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
    // Once the response has begun, nobody waits for it.
    promise.catch(() => undefined);
  }

  /** Ends the calls of the request. */
  break(reason: unknown): void {
    this.#reject(reason);
    this.post.disconnect();
  }

  end(): void {
    this.#signal.removeEventListener("abort", this.#abort);
    this.post.releaseMemory();
  }
}

/** JSON-RPC requests of this process: the library's `fetch`. Their keys, limits and responses are those of requests over HTTP. */
export class DirectRequests {
  readonly #options: DirectRequestsOptions;
  readonly #telemetry: HttpTelemetry;
  readonly #running = new Set<RunningRequest>();

  constructor(options: DirectRequestsOptions, telemetry: HttpTelemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
  }

  /** Rejects if the request is aborted, if its body breaks, or if the server closes before its response begins. */
  async fetch(request: Request): Promise<Response> {
    request.signal.throwIfAborted();
    const client = clientOf(request);
    const requestId = this.#options.jsonRpc.nextRequestId(client.headers);
    try {
      const { endpoint, caller } = await this.#open(client);
      return await this.#run(endpoint, request, new PostRequest(client, caller, requestId, this.#options.memory));
    } catch (error) {
      if (error instanceof RpcError) {
        const refusal = refused(error);
        return this.#respond(refusal, requestId, Buffer.concat(refusal.chunks));
      }
      throw error;
    }
  }

  /** Breaks the requests in flight. */
  close(): void {
    for (const running of this.#running) {
      running.break(new Error("the server is closed"));
    }
  }

  /** Rejects with RpcError if the request is not admitted, or if nothing is served for it. */
  async #open(client: ClientRequest): Promise<{ endpoint: Endpoint; caller: AuthenticatedCaller }> {
    const caller = await this.#options.admit(client);
    if (caller instanceof RpcError) {
      throw caller;
    }
    const route = this.#options.routeOf(caller);
    if (route instanceof RpcError) {
      throw route;
    }
    const { endpoint } = route;
    if (endpoint === undefined) {
      throw invalid("no chain is served at this path", 404);
    }
    if (client.method !== "POST") {
      throw invalid("JSON-RPC is sent by POST", 405);
    }
    if (!hasJson(client.headers)) {
      caller.charge?.(1, "invalid");
      throw wrongType();
    }
    return { endpoint, caller };
  }

  async #run(endpoint: Endpoint, request: Request, post: PostRequest): Promise<Response> {
    const startMs = performance.now();
    const running = new RunningRequest(post, request.signal);
    this.#running.add(running);
    this.#telemetry.begin();
    const end = (status: number, bytes: number): void => {
      running.end();
      this.#running.delete(running);
      this.#telemetry.end(post, { status, left: post.isDisconnected }, startMs);
      this.#telemetry.metrics.responseBytes.observe(bytes);
      post.caller.usage?.send(bytes);
    };
    let answer: EndpointResponse;
    try {
      answer = await Promise.race([this.#answer(endpoint, request, post), running.broken]);
    } catch (error) {
      end(error instanceof RpcError ? error.status : 0, 0);
      throw error;
    }
    const { status, chunks } = answer;
    if (isWhole(chunks)) {
      const body = Buffer.concat(chunks);
      end(status, body.length);
      return this.#respond(answer, post.requestId, body);
    }
    return this.#respond(
      answer,
      post.requestId,
      streamOf(chunks, running, (bytes) => end(status, bytes)),
    );
  }

  async #answer(endpoint: Endpoint, request: Request, post: PostRequest): Promise<EndpointResponse> {
    const { jsonRpc, maxBodyBytes } = this.#options;
    const body = await readRequest(request, maxBodyBytes, post);
    try {
      return await jsonRpc.call(endpoint, post, body);
    } catch (error) {
      return jsonRpc.rejectedBy(error, post);
    }
  }

  #respond(answer: EndpointResponse, requestId: string, body: Buffer<ArrayBuffer> | ReadableStream): Response {
    this.#telemetry.countResponse(answer.status);
    const headers = new Headers();
    const list = answerHeaders(answer, requestId);
    for (let at = 0; at < list.length; at += 2) {
      headers.append(list[at] ?? "", list[at + 1] ?? "");
    }
    // A response without a call to answer has no body (Fetch standard, "null body status").
    return new Response(answer.status === 204 ? null : body, { status: answer.status, headers });
  }
}

/** The body of a response that is read while its calls go on. `end` is called once, with the bytes that were read. */
const streamOf = (chunks: readonly Chunk[], running: RunningRequest, end: (bytes: number) => void): ReadableStream => {
  let bytes = 0;
  const read = async function* (): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) {
      for await (const part of isStream(chunk) ? chunk : [chunk]) {
        bytes += part.length;
        yield part;
        idle.refresh();
      }
    }
  };
  const stream = Readable.from(read(), { objectMode: false });
  const idle = setTimeout(() => stream.destroy(new Error("nobody read the response")), READ_TIMEOUT_MS);
  running.broken.catch((error) => stream.destroy(error));
  finished(stream, (error) => {
    clearTimeout(idle);
    if (error) {
      running.break(error);
    }
    end(bytes);
  });
  return Readable.toWeb(stream) as ReadableStream;
};
