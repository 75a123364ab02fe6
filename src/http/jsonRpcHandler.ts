import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AuthenticatedRequest } from "../access/accessControl.ts";
import { PaymentError } from "../access/payment/challenge.ts";
import type { Payments } from "../access/payment/payment.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { errorResult } from "../jsonrpc/dispatchResult.ts";
import { NULL_ID, parseEnvelope } from "../jsonrpc/envelope.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { type MemoryBudget, overBudget } from "../limits/memoryBudget.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { isJsonContentType } from "./contentType.ts";
import { createEndOfTick } from "./endOfTick.ts";
import {
  createRequestIds,
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
  HttpEndpointRequest,
} from "./endpoint.ts";
import { createHttpCounts, type HttpCounts } from "./httpCounts.ts";
import { PipelineLimit } from "./pipelineLimit.ts";
import { type ReadBody, readBody } from "./readBody.ts";
import { WaitingResponses } from "./waitingResponses.ts";
import { isWhole, writeResponse } from "./writeResponse.ts";

export interface JsonRpcHandlerOptions {
  readonly maxBodyBytes: number;
  /** Counts bodies, and responses that wait for slow readers. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  /** A connection whose client reads nothing of a response for this time is closed. */
  readonly writeTimeoutMs?: number;
  readonly metrics: Pick<Metrics, "inFlight" | "httpResponses" | "beforeScrape" | "requestBytes" | "responseBytes">;
  /** Returns the header names and values of every response to this request, in one flat list. */
  commonHeaders(request: IncomingMessage): readonly string[];
  /** Called at the end of every POST. */
  onEnd?(request: EndpointRequest, response: ServerResponse, startMs: number): void;
  /** Called with errors outside a call, and with connections that broke while a response was written. */
  onError(error: unknown, requestId: string): void;
}

/**
 * Time to discard the rest of a body that is too large. Without it, the sender gets a reset instead of the response.
 */
const LINGER_MS = 2_000;

/** A longer body of a rejected request is not read. */
const MAX_REJECTED_BYTES = 16 * 1024;

const REFUSED = "forebay; detail=refused";

const OVERLOADED = 503;

/** A shorter body is not counted while its calls wait for nodes. */
const MIN_HELD_BODY_BYTES = 4 * 1024;

const DEFAULT_WRITE_TIMEOUT_MS = 30_000;

const rejected = (error: RpcError, id?: Uint8Array): EndpointResponse => ({
  ...errorResult(error, id),
  cacheStatus: REFUSED,
});

const wrongType = (): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, "Invalid request: Content-Type must be application/json, not encoded", {
    status: 415,
  });

export interface JsonRpcHandler {
  /** Returns the id of a request: the client's, or a new one. */
  nextRequestId(headers: IncomingHttpHeaders): string;
  /** Reads the body up to the limit, calls the endpoint and writes its response. */
  handle(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse, admitted: AuthenticatedRequest): void;
  /** Responds with an error. Reads a short body, because the response to one call has the id of that call. */
  reject(error: RpcError, request: IncomingMessage, response: ServerResponse): void;
}

/** Returns the id of a single call, and `null` for a batch or an invalid body. */
const readId = (body: Uint8Array): Uint8Array => {
  try {
    const { batch, items } = parseEnvelope(body, 1);
    return (batch ? undefined : items[0]?.id) ?? NULL_ID;
  } catch (error) {
    if (error instanceof RpcError) {
      return NULL_ID;
    }
    throw error;
  }
};

/** One POST in flight. */
interface Post {
  readonly endpoint: Endpoint;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly endpointRequest: HttpEndpointRequest;
  /** Undefined unless the client pays for this request. */
  readonly payments: Payments | undefined;
}

class PostHandler implements JsonRpcHandler {
  readonly #options: JsonRpcHandlerOptions;
  readonly nextRequestId = createRequestIds();
  readonly #counts: HttpCounts;
  readonly #endOfTick = createEndOfTick();
  readonly #pipelineLimit = new PipelineLimit();
  readonly #waiting: WaitingResponses | undefined;

  constructor(options: JsonRpcHandlerOptions) {
    this.#options = options;
    this.#counts = createHttpCounts(options.metrics);
    const { memory, writeTimeoutMs = DEFAULT_WRITE_TIMEOUT_MS } = options;
    this.#waiting = memory && new WaitingResponses({ memory, writeTimeoutMs });
  }

  handle(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse, admitted: AuthenticatedRequest): void {
    const { memory } = this.#options;
    const endpointRequest = new HttpEndpointRequest(request, this.nextRequestId(request.headers), admitted, memory);
    const post: Post = { endpoint, request, response, endpointRequest, payments: admitted.payments };
    const startMs = performance.now();
    this.#counts.begin();
    response.once("close", () => {
      this.#counts.end();
      if (!response.writableFinished) {
        endpointRequest.leave();
      }
      endpointRequest.releaseMemory();
      this.#options.onEnd?.(endpointRequest, response, startMs);
    });
    const { "content-type": type, "content-encoding": encoding = "identity" } = request.headers;
    if (encoding === "identity" && isJsonContentType(type)) {
      readBody(request, this.#options.maxBodyBytes, (body) => this.#onBody(post, body), endpointRequest);
    } else {
      admitted.charge?.(1, "invalid");
      this.#respond(post, rejected(wrongType()));
    }
  }

  reject(error: RpcError, request: IncomingMessage, response: ServerResponse): void {
    const { "content-length": length = "0" } = request.headers;
    if (request.method === "POST" && Number(length) > 0 && Number(length) <= MAX_REJECTED_BYTES) {
      readBody(request, MAX_REJECTED_BYTES, (body) =>
        this.#reject(error, request, response, typeof body === "string" ? NULL_ID : readId(body)),
      );
    } else {
      this.#reject(error, request, response, NULL_ID);
    }
  }

  #reject(error: RpcError, request: IncomingMessage, response: ServerResponse, id: Uint8Array): void {
    const body = Buffer.concat(errorResult(error, id).chunks);
    const headers = this.#headersOf(request, this.nextRequestId(request.headers), REFUSED);
    // RFC 9110, section 15.5.2. Browsers do not ask their user for a bearer token.
    if (error.status === 401) {
      headers.push("WWW-Authenticate", "Bearer");
    }
    if (error.status === 429) {
      headers.push("Retry-After", String(error.retryAfterSeconds ?? 1), "Connection", "close");
    }
    this.#counts.answered(error.status);
    response.writeHead(error.status, [...headers, "Content-Length", String(body.length)]).end(body);
  }

  #headersOf(request: IncomingMessage, requestId: string, cacheStatus: string): string[] {
    return [
      "Content-Type",
      "application/json",
      "Cache-Status",
      cacheStatus,
      "x-request-id",
      requestId,
      ...this.#options.commonHeaders(request),
    ];
  }

  #onBody(post: Post, body: ReadBody): void {
    if (body === "tooLarge") {
      const { maxBodyBytes } = this.#options;
      post.endpointRequest.charge?.(1, "invalid");
      const message = `Invalid request: body is larger than ${maxBodyBytes} bytes`;
      this.#rejectUnread(post, new RpcError(CODES.INVALID_REQUEST, message, { status: 400 }));
      return;
    }
    if (body === "overBudget") {
      post.endpointRequest.releaseMemory();
      this.#rejectUnread(post, overBudget());
      return;
    }
    this.#options.metrics.requestBytes.observe(body.length);
    post.endpointRequest.usage?.receive(body.length);
    let endpointResponse: Awaitable<EndpointResponse>;
    try {
      endpointResponse =
        post.payments === undefined
          ? post.endpoint.handle(body, post.endpointRequest)
          : this.#handlePaid(post, post.payments, body);
    } catch (error) {
      endpointResponse = this.#rejectedBy(error, post);
    }
    if (endpointResponse instanceof Promise) {
      if (body.length > MIN_HELD_BODY_BYTES) {
        post.endpointRequest.holdParsedBody(body.length);
      }
      this.#awaitResponse(post, endpointResponse);
    } else {
      this.#respond(post, endpointResponse);
    }
  }

  /** Answers a request that is paid for. An error has the id of the call. */
  async #handlePaid(post: Post, payments: Payments, body: Buffer): Promise<EndpointResponse> {
    const { endpoint, endpointRequest, request } = post;
    const payable = { body, chain: endpoint.chain ?? "", target: request.url ?? "/", client: endpointRequest };
    try {
      return await payments.handle(payable, (isDetached) =>
        endpoint.handle(body, isDetached ? endpointRequest.detach() : endpointRequest),
      );
    } catch (error) {
      const { headers = undefined } = error instanceof PaymentError ? error : {};
      return { ...this.#rejectedBy(error, post, readId(body)), headers };
    }
  }

  #awaitResponse(post: Post, endpointResponse: Promise<EndpointResponse>): void {
    const requests = this.#pipelineLimit.begin(post.request.socket);
    endpointResponse.then(
      (known) => {
        requests.end();
        this.#respond(post, known);
      },
      (error: unknown) => {
        requests.end();
        this.#respond(post, this.#rejectedBy(error, post));
      },
    );
  }

  /** Writes a response at the end of this turn of the event loop. */
  #respond(post: Post, endpointResponse: EndpointResponse): void {
    this.#endOfTick(() => {
      try {
        const bytes = this.#write(post, endpointResponse);
        if (bytes instanceof Promise) {
          bytes.then(
            (known) => this.#countSent(post, known),
            (error: unknown) => this.#fail(post, error),
          );
        } else {
          this.#countSent(post, bytes);
        }
      } catch (error) {
        this.#fail(post, error);
      }
    });
  }

  #countSent({ endpointRequest }: Post, bytes: number): void {
    this.#options.metrics.responseBytes.observe(bytes);
    endpointRequest.usage?.send(bytes);
  }

  /** Returns the length of the body. */
  #write({ request, response, endpointRequest }: Post, endpointResponse: EndpointResponse): Awaitable<number> {
    const { status, retryAfterSeconds, chunks, pending, headers: further } = endpointResponse;
    const headers = this.#headersOf(request, endpointRequest.requestId, endpointResponse.cacheStatus);
    if (pending !== undefined) {
      headers.push("x-forebay-pending", pending);
    }
    if (retryAfterSeconds !== undefined) {
      headers.push("Retry-After", String(retryAfterSeconds));
    }
    if (further !== undefined) {
      headers.push(...further);
    }
    this.#counts.answered(status);
    response.statusCode = status;
    const bytes = writeResponse(response, headers, chunks, request.headers["accept-encoding"]);
    if (bytes instanceof Promise) {
      // A compressed response is another buffer, and a stream has been read when it resolves.
      return bytes.then((known) => {
        this.#countWaiting(response, [], endpointRequest);
        return known;
      });
    }
    if (response.writableLength > 0) {
      this.#countWaiting(response, isWhole(chunks) ? chunks : [], endpointRequest);
    }
    return bytes;
  }

  /** Counts a response that its client has not read yet. From now on the response itself counts, and not the request. */
  #countWaiting(response: ServerResponse, chunks: readonly Uint8Array[], request: HttpEndpointRequest): void {
    if (this.#waiting !== undefined && response.writableLength > 0) {
      request.releaseMemory();
      this.#waiting.add(response, chunks, request.clientId);
    }
  }

  /** Breaks the connection: part of the response may be sent, and the client must not take it for the whole. */
  #fail({ response, endpointRequest }: Post, error: unknown): void {
    response.destroy();
    this.#options.onError(error, endpointRequest.requestId);
  }

  #rejectedBy(error: unknown, { endpointRequest }: Post, id?: Uint8Array): EndpointResponse {
    if (error instanceof RpcError) {
      return rejected(error, id);
    }
    // A client that disconnects is not an error.
    if (!endpointRequest.hasLeft) {
      this.#options.onError(error, endpointRequest.requestId);
    }
    return rejected(new RpcError(CODES.INTERNAL, "Internal error"), id);
  }

  /** Sends the error of a body that is not read. Ends the connection after the sender had time to read the error. */
  #rejectUnread({ request, response, endpointRequest: { requestId } }: Post, error: RpcError): void {
    const { status, retryAfterSeconds } = error;
    const body = Buffer.concat(errorResult(error).chunks);
    const headers = this.#headersOf(request, requestId, REFUSED);
    if (retryAfterSeconds !== undefined) {
      headers.push("Retry-After", String(retryAfterSeconds));
    }
    this.#counts.answered(status);
    response.writeHead(status, [...headers, "Content-Length", String(body.length), "Connection", "close"]).write(body);
    const end = (): void => {
      clearTimeout(timer);
      response.end();
    };
    const timer = setTimeout(end, LINGER_MS);
    request.once("end", end).once("close", end);
    if (status === OVERLOADED) {
      // Reading would cost more than the request itself. The client has the response before the connection ends.
      request.pause();
    } else {
      request.resume();
    }
  }
}

/** Creates the handler of JSON-RPC over POST. */
export const createJsonRpcHandler = (options: JsonRpcHandlerOptions): JsonRpcHandler => new PostHandler(options);
