import type { IncomingMessage, ServerResponse } from "node:http";
import type { AuthenticatedRequest } from "../access/accessControl.ts";
import { errorResult } from "../jsonrpc/dispatchResult.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
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
import { createHttpCounts } from "./httpCounts.ts";
import { readBody } from "./readBody.ts";
import { writeResponse } from "./writeResponse.ts";

export interface JsonRpcHandlerOptions {
  readonly maxBodyBytes: number;
  readonly metrics: Pick<Metrics, "inFlight" | "httpResponses" | "beforeScrape" | "requestBytes" | "responseBytes">;
  /** Flat list of names and values that every answer to this request has. */
  commonHeaders(request: IncomingMessage): readonly string[];
  /** Told every POST when it is over. */
  onEnd?(request: EndpointRequest, response: ServerResponse, startMs: number): void;
  /** Told what went wrong outside a call, and which connections broke on the way. */
  onError(error: unknown, requestId: string): void;
}

/** How long a body that is too large is read on, so that its sender gets to read the answer instead of a reset. */
const LINGER_MS = 2_000;

const REFUSED = "forebay; detail=refused";

const refused = (error: RpcError): EndpointResponse => ({ ...errorResult(error), cacheStatus: REFUSED });

const wrongType = (): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, "Invalid request: Content-Type must be application/json, not encoded", {
    status: 415,
  });

export interface JsonRpcHandler {
  (endpoint: Endpoint, request: IncomingMessage, response: ServerResponse, admitted: AuthenticatedRequest): void;
  /** Answers without reading the body. */
  refuse(error: RpcError, request: IncomingMessage, response: ServerResponse): void;
}

/** JSON-RPC over POST: reads the body up to the limit, asks the endpoint, writes. */
export const createJsonRpcHandler = ({
  maxBodyBytes,
  metrics,
  commonHeaders,
  onEnd,
  onError,
}: JsonRpcHandlerOptions): JsonRpcHandler => {
  const nextRequestId = createRequestIds();
  const counts = createHttpCounts(metrics);
  const turnEnd = createEndOfTick();

  const headersOf = (request: IncomingMessage, requestId: string, cacheStatus: string): string[] => [
    "Content-Type",
    "application/json",
    "Cache-Status",
    cacheStatus,
    "x-request-id",
    requestId,
    ...commonHeaders(request),
  ];

  /** The answer is sent at once, the connection ends when the sender has seen it. */
  const refuseLarge = (request: IncomingMessage, response: ServerResponse, requestId: string): void => {
    const error = new RpcError(CODES.INVALID_REQUEST, `Invalid request: body is larger than ${maxBodyBytes} bytes`);
    const body = Buffer.concat(errorResult(error).chunks);
    const headers = headersOf(request, requestId, REFUSED);
    counts.answered(400);
    response.writeHead(400, [...headers, "Content-Length", String(body.length), "Connection", "close"]).write(body);
    const end = (): void => {
      clearTimeout(timer);
      response.end();
    };
    const timer = setTimeout(end, LINGER_MS);
    request.once("end", end).once("close", end).resume();
  };

  const fail = (error: unknown, { requestId }: HttpEndpointRequest): EndpointResponse => {
    if (error instanceof RpcError) return refused(error);
    onError(error, requestId);
    return refused(new RpcError(CODES.INTERNAL, "Internal error"));
  };

  const answer = async (
    endpoint: Endpoint,
    request: IncomingMessage,
    response: ServerResponse,
    asker: HttpEndpointRequest,
  ): Promise<void> => {
    const {
      "content-type": type,
      "content-encoding": encoding = "identity",
      "accept-encoding": accepted,
    } = request.headers;
    let given: EndpointResponse;
    if (encoding === "identity" && isJsonContentType(type)) {
      const body = await readBody(request, maxBodyBytes);
      if (body === "aborted") return;
      if (body === "tooLarge") return refuseLarge(request, response, asker.requestId);
      metrics.requestBytes.observe(body.length);
      try {
        given = await endpoint.handle(body, asker);
      } catch (error) {
        given = fail(error, asker);
      }
    } else given = refused(wrongType());
    const { status, retryAfterSeconds, chunks, pending } = given;
    const headers = headersOf(request, asker.requestId, given.cacheStatus);
    if (pending !== undefined) headers.push("x-forebay-pending", pending);
    if (retryAfterSeconds !== undefined) headers.push("Retry-After", String(retryAfterSeconds));
    counts.answered(status);
    await turnEnd();
    metrics.responseBytes.observe(await writeResponse(response, status, headers, chunks, accepted));
  };

  const post = (
    endpoint: Endpoint,
    request: IncomingMessage,
    response: ServerResponse,
    admitted: AuthenticatedRequest,
  ): void => {
    const asker = new HttpEndpointRequest(request, nextRequestId(request.headers), admitted);
    const startMs = performance.now();
    counts.begin();
    response.once("close", () => {
      counts.end();
      if (!response.writableFinished) asker.leave();
      onEnd?.(asker, response, startMs);
    });
    answer(endpoint, request, response, asker).catch((error) => {
      // Something was sent already: what is incomplete must not look whole.
      response.destroy();
      onError(error, asker.requestId);
    });
  };
  const refuse: JsonRpcHandler["refuse"] = (error, request, response) => {
    const body = Buffer.concat(errorResult(error).chunks);
    const headers = headersOf(request, nextRequestId(request.headers), REFUSED);
    // RFC 9110, section 15.5.2; browsers do not ask their user for a bearer token.
    if (error.status === 401) headers.push("WWW-Authenticate", "Bearer");
    counts.answered(error.status);
    response.writeHead(error.status, [...headers, "Content-Length", String(body.length)]).end(body);
  };
  return Object.assign(post, { refuse });
};
