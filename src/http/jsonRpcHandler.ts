import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AuthenticatedCaller } from "../access/access.ts";
import { PaymentError, type Payments } from "../access/payment/payments.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { NULL_ID, parseEnvelope } from "../jsonrpc/envelope.ts";
import { isJsonRpc } from "../jsonrpc/isJsonRpc.ts";
import { CODES, invalidRequest, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import type { Endpoint, EndpointResponse } from "./endpoint.ts";
import {
  bodyLength,
  createRequestIds,
  HttpRequest,
  hasBody,
  type PassedBody,
  type PostRequest,
  type ReadBody,
  readBody,
  readPassedBody,
  type UnreadReason,
} from "./httpRequest.ts";
import type { HttpTelemetry } from "./httpTelemetry.ts";
import { PipelinedRequests } from "./pipelinedRequests.ts";
import { PostResponder, type PostResponderOptions, rejected } from "./postResponder.ts";

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
}

/** A longer body of a rejected request is not read for its id. */
const MAX_REJECTED_BYTES = 16 * 1024;

/** A shorter body is not counted while its calls wait for nodes. */
const MIN_HELD_BODY_BYTES = 4 * 1024;

export const wrongType = (): RpcError => invalidRequest("Content-Type must be application/json, not encoded", 415);

const encodedBody = (): RpcError => invalidRequest("a body with Content-Encoding is not passed through", 415);

const notPassedThrough = (chain: string): RpcError =>
  invalidRequest(`no JSON-RPC is served or passed through at this path: send it to /${chain}`, 404);

/** The error of a body that is not read to its end. */
export const unreadError = (reason: UnreadReason, maxBytes: number): RpcError =>
  reason === "overBudget"
    ? overBudget()
    : invalidRequest(
        reason === "tooLarge" ? `body is larger than ${maxBytes} bytes` : "body arrives in too many pieces",
        400,
      );

/** Counts a body that is not read to its end, unless forebay has no memory for it. */
export const chargeUnread = ({ caller }: PostRequest, reason: UnreadReason): void => {
  if (reason !== "overBudget") {
    caller.charge?.(1, "invalid");
  }
};

/** Whether the body of a request is JSON that can be read. */
export const hasJson = ({
  "content-type": type,
  "content-encoding": encoding = "identity",
}: IncomingHttpHeaders): boolean => encoding === "identity" && isJsonContentType(type);

/** A request that is passed through if it is not JSON-RPC. */
export interface PassedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly admitted: AuthenticatedCaller;
  /** The name of the chain. */
  readonly chain: string;
  /** Passes the request through. `body` is undefined if it is still to be read. */
  pass(body: Buffer | undefined): void;
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

/** Handles JSON-RPC over POST, and the requests beside it that are passed through or rejected. */
export class JsonRpcHandler {
  readonly #options: JsonRpcHandlerOptions;
  /** Returns the id of a request: the client's, or a new one. */
  readonly nextRequestId = createRequestIds();
  readonly #telemetry: HttpTelemetry;
  readonly #pipelined = new PipelinedRequests();
  readonly #responder: PostResponder;

  constructor(options: JsonRpcHandlerOptions, telemetry: HttpTelemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
    this.#responder = new PostResponder(options, telemetry, this.nextRequestId);
  }

  /** Reads the body up to the limit, calls the endpoint and writes its response. */
  handle(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse, admitted: AuthenticatedCaller): void {
    const post = this.#open(request, response, admitted);
    const startMs = performance.now();
    this.#telemetry.begin();
    response.once("close", () => {
      if (!response.writableFinished) {
        post.disconnect();
      }
      post.releaseMemory();
      this.#telemetry.end(post, { status: response.statusCode, left: !response.writableFinished }, startMs);
    });
    if (hasJson(request.headers)) {
      const limits = { length: bodyLength(request), maxBytes: this.#options.maxBodyBytes };
      readBody(request, limits, (body) => this.#onBody(endpoint, post, body), post);
    } else {
      admitted.charge?.(1, "invalid");
      this.#responder.respond(post, rejected(wrongType()));
    }
  }

  #open(message: IncomingMessage, response: ServerResponse, caller: AuthenticatedCaller): HttpRequest {
    return new HttpRequest({ message, response }, caller, this.nextRequestId(message.headers), this.#options.memory);
  }

  /** Passes a request through, unless a target could read JSON-RPC in it: such a call would escape refusals, rules and limits. */
  passThrough(passed: PassedRequest): void {
    const { request, response, admitted } = passed;
    const { maxBodyBytes } = this.#options;
    const post = this.#open(request, response, admitted);
    if (!hasBody(request)) {
      void this.#pass(passed, post, undefined);
      return;
    }
    response.once("close", () => post.releaseMemory());
    const { "content-encoding": encoding = "identity" } = request.headers;
    if (encoding === "identity") {
      readPassedBody(request, maxBodyBytes, (body) => this.#onPassedBody(passed, post, body), post);
    } else {
      admitted.charge?.(1, "invalid");
      this.#responder.rejectUnread(post, encodedBody());
    }
  }

  /** Responds with an error. Reads a short body, because the response to one call has the id of that call. */
  reject(error: RpcError, request: IncomingMessage, response: ServerResponse): void {
    const length = bodyLength(request);
    if (request.method === "POST" && length > 0 && length <= MAX_REJECTED_BYTES) {
      readBody(request, { length, maxBytes: MAX_REJECTED_BYTES }, (body) =>
        this.#responder.reject(error, request, response, typeof body === "string" ? NULL_ID : readId(body)),
      );
    } else {
      this.#responder.reject(error, request, response, NULL_ID);
    }
  }

  #onPassedBody(passed: PassedRequest, post: HttpRequest, body: PassedBody): void {
    const { request, response, chain } = passed;
    if (typeof body !== "string" && isJsonRpc(body)) {
      this.#telemetry.metrics.accessRefused.inc({ reason: "passThrough" });
      post.caller.charge?.(1, "invalid");
      const id = body.length > MAX_REJECTED_BYTES ? NULL_ID : readId(body);
      this.#responder.reject(notPassedThrough(chain), request, response, id);
    } else if (body === "unread" || typeof body !== "string") {
      void this.#pass(passed, post, body === "unread" ? undefined : body);
    } else {
      this.#rejectUnread(post, body);
    }
  }

  /** Passes a request through. It counts as one call of its client. */
  async #pass(
    { request, response, admitted, pass }: PassedRequest,
    post: HttpRequest,
    body: Buffer | undefined,
  ): Promise<void> {
    try {
      await admitted.countRequest?.();
    } catch (error) {
      const refusal = error instanceof RpcError ? error : new RpcError(CODES.INTERNAL, "Internal error");
      if (body === undefined && hasBody(request)) {
        this.#responder.rejectUnread(post, refusal);
      } else {
        this.#responder.reject(refusal, request, response, NULL_ID);
      }
      return;
    }
    // A client that disconnected in the meantime gets no response.
    if (!response.destroyed) {
      pass(body);
    }
  }

  #rejectUnread(post: HttpRequest, reason: UnreadReason): void {
    post.releaseMemory();
    chargeUnread(post, reason);
    this.#responder.rejectUnread(post, unreadError(reason, this.#options.maxBodyBytes), reason === "tooLarge");
  }

  #onBody(endpoint: Endpoint, post: HttpRequest, body: ReadBody): void {
    if (typeof body === "string") {
      this.#rejectUnread(post, body);
      return;
    }
    // Only the oldest response of a connection has its socket.
    if (post.response.socket === null) {
      this.#pipelined.handle(post.message.socket, () => this.#handleBody(endpoint, post, body));
    } else {
      this.#handleBody(endpoint, post, body);
    }
  }

  #handleBody(endpoint: Endpoint, post: HttpRequest, body: Buffer): void {
    let endpointResponse: Awaitable<EndpointResponse>;
    try {
      endpointResponse = this.call(endpoint, post, body);
    } catch (error) {
      endpointResponse = this.rejectedBy(error, post);
    }
    if (endpointResponse instanceof Promise) {
      if (body.length > MIN_HELD_BODY_BYTES) {
        post.holdParsedBody(body.length);
      }
      this.#awaitResponse(post, endpointResponse);
    } else {
      this.#responder.respond(post, endpointResponse);
    }
  }

  /** Calls the endpoint with a whole body. Throws or rejects if the whole request is invalid: see rejectedBy. */
  call(endpoint: Endpoint, post: PostRequest, body: Buffer): Awaitable<EndpointResponse> {
    const { usage, payments } = post.caller;
    usage?.receive(body.length);
    return payments === undefined ? endpoint.handle(body, post) : this.#handlePaid(payments, endpoint, post, body);
  }

  /** Answers a request that is paid for. An error has the id of the call. */
  async #handlePaid(
    payments: Payments,
    endpoint: Endpoint,
    post: PostRequest,
    body: Buffer,
  ): Promise<EndpointResponse> {
    const payable = { body, chain: endpoint.chain ?? "", target: post.url, inbound: post };
    try {
      return await payments.handle(payable, (isDetached) => {
        if (isDetached) {
          post.detach();
        }
        return endpoint.handle(body, post);
      });
    } catch (error) {
      const { headers = undefined } = error instanceof PaymentError ? error : {};
      return { ...this.rejectedBy(error, post, readId(body)), headers };
    }
  }

  #awaitResponse(post: HttpRequest, endpointResponse: Promise<EndpointResponse>): void {
    const requests = this.#pipelined.begin(post.message.socket);
    endpointResponse.then(
      (known) => {
        requests.end();
        this.#responder.respond(post, known);
      },
      (error: unknown) => {
        requests.end();
        this.#responder.respond(post, this.rejectedBy(error, post));
      },
    );
  }

  /** The response to a request that is invalid as a whole. */
  rejectedBy(error: unknown, post: PostRequest, id?: Uint8Array): EndpointResponse {
    if (error instanceof RpcError) {
      return rejected(error, id);
    }
    // A client that disconnects is not an error.
    if (!post.isDisconnected) {
      this.#telemetry.logBroken(error, post.requestId);
    }
    return rejected(new RpcError(CODES.INTERNAL, "Internal error"), id);
  }
}
