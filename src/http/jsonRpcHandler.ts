import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AuthenticatedRequest } from "../access/accessControl.ts";
import { PaymentError } from "../access/payment/challenge.ts";
import type { Payments } from "../access/payment/payment.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { errorResult } from "../jsonrpc/dispatchResult.ts";
import { NULL_ID, parseEnvelope } from "../jsonrpc/envelope.ts";
import { isJsonRpc } from "../jsonrpc/isJsonRpc.ts";
import { CODES, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import {
  createRequestIds,
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
  HttpEndpointRequest,
} from "./endpoint.ts";
import { createHttpCounts, type HttpCounts } from "./httpCounts.ts";
import { hasBody, type PassedBody, readPassedBody } from "./passedBody.ts";
import { PipelinedRequests } from "./pipelinedRequests.ts";
import { type OpenPost, PostResponder, type PostResponderOptions, REFUSED } from "./postResponder.ts";
import { type ReadBody, readBody } from "./readBody.ts";

const ACCEPTED = new Set(["application/json", "application/json-rpc", "application/jsonrequest"]);

/** Whether a Content-Type is JSON. Parameters are ignored, because JSON is always UTF-8 (RFC 8259, section 8.1). */
const isJsonContentType = (value: string | undefined): boolean => {
  if (value === "application/json") {
    return true;
  }
  const [type = ""] = (value ?? "").split(";");
  return ACCEPTED.has(type.trim().toLowerCase());
};

export interface JsonRpcHandlerOptions extends PostResponderOptions {
  readonly maxBodyBytes: number;
  readonly metrics: Pick<
    Metrics,
    "inFlight" | "httpResponses" | "beforeScrape" | "requestBytes" | "responseBytes" | "accessRefused"
  >;
  /** Called at the end of every POST. */
  onEnd?(request: EndpointRequest, response: ServerResponse, startMs: number): void;
}

/** A longer body of a rejected request is not read. */
const MAX_REJECTED_BYTES = 16 * 1024;

/** A shorter body is not counted while its calls wait for nodes. */
const MIN_HELD_BODY_BYTES = 4 * 1024;

const rejected = (error: RpcError, id?: Uint8Array): EndpointResponse => ({
  ...errorResult(error, id),
  cacheStatus: REFUSED,
});

const wrongType = (): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, "Invalid request: Content-Type must be application/json, not encoded", {
    status: 415,
  });

const encodedBody = (): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, "Invalid request: a body with Content-Encoding is not passed through", {
    status: 415,
  });

const notPassedThrough = (chain: string): RpcError => {
  const message = `Invalid request: no JSON-RPC is served or passed through at this path: send it to /${chain}`;
  return new RpcError(CODES.INVALID_REQUEST, message, { status: 404 });
};

/** A request that is passed through if it is not JSON-RPC. */
export interface PassedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly admitted: AuthenticatedRequest;
  /** The name of the chain. */
  readonly chain: string;
  /** Passes the request through. `body` is undefined if it is still to be read. */
  pass(body: Buffer | undefined): void;
}

export interface JsonRpcHandler {
  /** Returns the id of a request: the client's, or a new one. */
  nextRequestId(headers: IncomingHttpHeaders): string;
  /** Reads the body up to the limit, calls the endpoint and writes its response. */
  handle(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse, admitted: AuthenticatedRequest): void;
  /** Passes a request through, unless a target could read JSON-RPC in it: such a call would escape refusals, rules and limits. */
  passThrough(passed: PassedRequest): void;
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
interface Post extends OpenPost {
  readonly endpoint: Endpoint;
  /** Undefined unless the client pays for this request. */
  readonly payments: Payments | undefined;
}

class PostHandler implements JsonRpcHandler {
  readonly #options: JsonRpcHandlerOptions;
  readonly nextRequestId = createRequestIds();
  readonly #counts: HttpCounts;
  readonly #pipelined = new PipelinedRequests();
  readonly #responder: PostResponder;

  constructor(options: JsonRpcHandlerOptions) {
    this.#options = options;
    this.#counts = createHttpCounts(options.metrics);
    this.#responder = new PostResponder(options, this.#counts, this.nextRequestId);
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
      this.#responder.respond(post, rejected(wrongType()));
    }
  }

  passThrough(passed: PassedRequest): void {
    const { request, response, admitted } = passed;
    if (!hasBody(request)) {
      passed.pass(undefined);
      return;
    }
    const { memory, maxBodyBytes } = this.#options;
    const endpointRequest = new HttpEndpointRequest(request, this.nextRequestId(request.headers), admitted, memory);
    response.once("close", () => endpointRequest.releaseMemory());
    const post: OpenPost = { request, response, endpointRequest };
    const { "content-encoding": encoding = "identity" } = request.headers;
    if (encoding === "identity") {
      readPassedBody(request, maxBodyBytes, (body) => this.#onPassedBody(passed, post, body), endpointRequest);
    } else {
      admitted.charge?.(1, "invalid");
      this.#responder.rejectUnread(post, encodedBody());
    }
  }

  reject(error: RpcError, request: IncomingMessage, response: ServerResponse): void {
    const { "content-length": length = "0" } = request.headers;
    if (request.method === "POST" && Number(length) > 0 && Number(length) <= MAX_REJECTED_BYTES) {
      readBody(request, MAX_REJECTED_BYTES, (body) =>
        this.#responder.reject(error, request, response, typeof body === "string" ? NULL_ID : readId(body)),
      );
    } else {
      this.#responder.reject(error, request, response, NULL_ID);
    }
  }

  #onPassedBody({ request, response, chain, pass }: PassedRequest, post: OpenPost, body: PassedBody): void {
    if (typeof body !== "string" && isJsonRpc(body)) {
      this.#options.metrics.accessRefused.inc({ reason: "passThrough" });
      post.endpointRequest.charge?.(1, "invalid");
      this.#responder.reject(notPassedThrough(chain), request, response, readId(body));
    } else if (body === "tooLarge" || body === "overBudget") {
      this.#rejectUnread(post, body);
    } else {
      pass(body === "unread" ? undefined : body);
    }
  }

  #rejectUnread(post: OpenPost, reason: "tooLarge" | "overBudget"): void {
    if (reason === "tooLarge") {
      const { maxBodyBytes } = this.#options;
      post.endpointRequest.charge?.(1, "invalid");
      const message = `Invalid request: body is larger than ${maxBodyBytes} bytes`;
      this.#responder.rejectUnread(post, new RpcError(CODES.INVALID_REQUEST, message, { status: 400 }));
    } else {
      post.endpointRequest.releaseMemory();
      this.#responder.rejectUnread(post, overBudget());
    }
  }

  #onBody(post: Post, body: ReadBody): void {
    if (typeof body === "string") {
      this.#rejectUnread(post, body);
      return;
    }
    // Only the oldest response of a connection has its socket.
    if (post.response.socket === null) {
      this.#pipelined.handle(post.request.socket, () => this.#handleBody(post, body));
    } else {
      this.#handleBody(post, body);
    }
  }

  #handleBody(post: Post, body: Buffer): void {
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
      this.#responder.respond(post, endpointResponse);
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
    const requests = this.#pipelined.begin(post.request.socket);
    endpointResponse.then(
      (known) => {
        requests.end();
        this.#responder.respond(post, known);
      },
      (error: unknown) => {
        requests.end();
        this.#responder.respond(post, this.#rejectedBy(error, post));
      },
    );
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
}

/** Creates the handler of JSON-RPC over POST. */
export const createJsonRpcHandler = (options: JsonRpcHandlerOptions): JsonRpcHandler => new PostHandler(options);
