import { finished, Readable } from "node:stream";
import type { AuthenticatedCaller, ClientRequest } from "../access/access.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, isStream, isWhole } from "../jsonrpc/response.ts";
import { invalidRequest, RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { Endpoint, EndpointResponse } from "./endpoint.ts";
import { PostRequest, REQUEST_TIMEOUT_MS, type ReadBody, readBody } from "./httpRequest.ts";
import type { HttpTelemetry } from "./httpTelemetry.ts";
import { chargeUnread, hasJson, type JsonRpcHandler, unreadError, wrongType } from "./jsonRpcHandler.ts";
import { answerHeaders, rejected } from "./postResponder.ts";
import { type Admitted, orThrow } from "./router.ts";

/** A request of this process counts as one of a program on this machine. */
const LOCAL_ADDRESS = "127.0.0.1";

/** A streamed response breaks if a part of it waits for its reader for this time. */
const READ_TIMEOUT_MS = 30_000;

export interface DirectRequestsOptions {
  readonly maxBodyBytes: number;
  readonly memory?: MemoryBudget | undefined;
  readonly jsonRpc: Pick<JsonRpcHandler, "call" | "rejectedBy" | "nextRequestId">;
  /** Returns the error of a client that is not admitted, or whose key may not use the chain. */
  admit(request: ClientRequest): Awaitable<Admitted | RpcError>;
}

const clientOf = ({ method, url, headers }: Request): ClientRequest => {
  const { host, pathname, search } = new URL(url);
  return {
    ...{ method, url: pathname + search, socket: { remoteAddress: LOCAL_ADDRESS } },
    headers: { host, ...Object.fromEntries(headers) },
  };
};

const requestTimeout = (): RpcError => invalidRequest(`body has not arrived in ${REQUEST_TIMEOUT_MS} ms`, 408);

/** Reads a body within the limits of one that arrives over HTTP. Rejects with RpcError above them, and when the request is aborted. */
const readRequest = ({ body }: Request, maxBytes: number, post: PostRequest): Promise<Buffer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const stream = body === null ? Readable.from([]) : Readable.fromWeb(body);
  const onAbort = (): unknown => stream.destroy(new Error("the request was aborted"));
  const timer = setTimeout(() => stream.destroy(requestTimeout()), REQUEST_TIMEOUT_MS);
  post.lazySignal.add(onAbort);
  stream.on("error", reject);
  const onBody = (read: ReadBody): void => {
    if (typeof read === "string") {
      chargeUnread(post, read);
      stream.destroy(unreadError(read, maxBytes));
    } else {
      resolve(read);
    }
  };
  readBody(stream, { length: 0, maxBytes }, onBody, post);
  return promise.finally(() => {
    clearTimeout(timer);
    post.lazySignal.remove(onAbort);
  });
};

/** JSON-RPC requests of this process: the library's `fetch`. Their keys, limits and responses are those of requests over HTTP. */
export class DirectRequests {
  readonly #options: DirectRequestsOptions;
  readonly #telemetry: HttpTelemetry;
  readonly #running = new Set<PostRequest>();

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
      request.signal.throwIfAborted();
      return await this.#run(endpoint, request, new PostRequest(client, caller, requestId, this.#options.memory));
    } catch (error) {
      if (error instanceof RpcError) {
        const refusal = rejected(error);
        return this.#respond(refusal, requestId, Buffer.concat(refusal.chunks));
      }
      throw error;
    }
  }

  /** Breaks the requests in flight. */
  close(): void {
    for (const post of this.#running) {
      post.disconnect();
    }
  }

  /** Rejects with RpcError if the request is not admitted, or if nothing is served for it. */
  async #open(client: ClientRequest): Promise<{ endpoint: Endpoint; caller: AuthenticatedCaller }> {
    const { caller, route } = orThrow(await this.#options.admit(client));
    const { endpoint } = route;
    if (endpoint === undefined) {
      throw invalidRequest("no chain is served at this path", 404);
    }
    if (client.method !== "POST") {
      throw invalidRequest("JSON-RPC is sent by POST", 405);
    }
    if (!hasJson(client.headers)) {
      caller.charge?.(1, "invalid");
      throw wrongType();
    }
    return { endpoint, caller };
  }

  async #run(endpoint: Endpoint, request: Request, post: PostRequest): Promise<Response> {
    const { signal } = request;
    const startMs = performance.now();
    const disconnect = (): void => post.disconnect();
    signal.addEventListener("abort", disconnect);
    this.#running.add(post);
    this.#telemetry.begin();
    const broken = new Promise<never>((_, reject) => {
      post.lazySignal.add(() => reject(signal.aborted ? signal.reason : new Error("the server is closed")));
    });
    // Once the response has begun, its reader gets the error.
    broken.catch(() => undefined);
    const end = (status: number, bytes: number): void => {
      signal.removeEventListener("abort", disconnect);
      this.#running.delete(post);
      post.releaseMemory();
      this.#telemetry.end(post, { status, left: post.isDisconnected }, startMs);
      post.caller.usage?.send(bytes);
    };
    let answer: EndpointResponse;
    try {
      answer = await Promise.race([this.#answer(endpoint, request, post), broken]);
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
      streamOf(chunks, post, (bytes) => end(status, bytes)),
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
const streamOf = (chunks: readonly Chunk[], post: PostRequest, end: (bytes: number) => void): ReadableStream => {
  let bytes = 0;
  let idle: NodeJS.Timeout | undefined;
  const read = async function* (): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) {
      for await (const part of isStream(chunk) ? chunk : [chunk]) {
        bytes += part.length;
        idle = setTimeout(() => stream.destroy(new Error("nobody read the response")), READ_TIMEOUT_MS);
        yield part;
        clearTimeout(idle);
      }
    }
  };
  const stream = Readable.from(read(), { objectMode: false });
  post.lazySignal.add(() => stream.destroy(new Error("the request was aborted")));
  finished(stream, (error) => {
    clearTimeout(idle);
    if (error) {
      post.disconnect();
    }
    end(bytes);
  });
  return Readable.toWeb(stream) as ReadableStream;
};
