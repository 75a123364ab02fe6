import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AuthenticatedCaller } from "../access/access.ts";
import type { InboundRequest } from "../core/context.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { type Chunk, isStream } from "../jsonrpc/response.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import type { PassedMessages } from "./passedMessages.ts";

export interface EndpointResponse {
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly chunks: readonly Chunk[];
  /** Value of the Cache-Status header (see formatCacheStatus). */
  readonly cacheStatus: string;
  /** Value of x-forebay-pending, for calls at `pending`. */
  readonly pending?: string | undefined;
  /** Value of x-forebay-head: whether a majority of several origins has the served head. Undefined before the first head. */
  readonly head?: "agreed" | "linked" | undefined;
  /** The errors in the response. Complete when all chunks are read. */
  readonly errors?: readonly RpcError[] | undefined;
  /** Names and values of further headers, in one flat list. */
  readonly headers?: readonly string[] | undefined;
}

/** Passes requests through that are not JSON-RPC. */
export interface PassThrough {
  /** `body` is undefined if it is still to be read. */
  web(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void;
  /** `messages` checks what the client sends. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, messages: PassedMessages): void;
  close(): void;
}

/** The JSON-RPC service of one path. */
export interface Endpoint {
  /** The name of the chain. */
  readonly chain?: string | undefined;
  /** Handles a body. Throws or rejects with RpcError if the whole request is invalid. */
  handle(body: Uint8Array, request: InboundRequest): Awaitable<EndpointResponse>;
  /** Serves WebSockets. Without this method, they are passed through. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, admitted: AuthenticatedCaller): void;
  readonly passthrough?: PassThrough | undefined;
}

interface TrackedEndpoint {
  readonly endpoint: Endpoint;
  /** Resolves when no request is in flight, streams included. Call it after the last request has arrived. */
  idle(): Promise<void>;
}

/** Wraps an endpoint and counts its requests in flight, so that its chain can be closed after the last one. */
export const trackInFlight = (endpoint: Endpoint): TrackedEndpoint => {
  let inFlight = 0;
  let waiting: (() => void)[] = [];
  const end = (): void => {
    inFlight--;
    if (inFlight > 0) {
      return;
    }
    for (const resolve of waiting) {
      resolve();
    }
    waiting = [];
  };
  const tracked = async function* (stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* stream;
    } finally {
      end();
    }
  };
  const onFailure = (error: unknown): never => {
    end();
    throw error;
  };
  const onResponse = (response: EndpointResponse): EndpointResponse => {
    if (!response.chunks.some(isStream)) {
      end();
      return response;
    }
    const chunks = response.chunks.map((chunk): Chunk => {
      if (!isStream(chunk)) {
        return chunk;
      }
      inFlight++;
      return tracked(chunk);
    });
    end();
    return { ...response, chunks };
  };
  const handle: Endpoint["handle"] = (body, request) => {
    inFlight++;
    let response: Awaitable<EndpointResponse>;
    try {
      response = endpoint.handle(body, request);
    } catch (error) {
      return onFailure(error);
    }
    return response instanceof Promise ? response.then(onResponse, onFailure) : onResponse(response);
  };
  return {
    endpoint: { ...endpoint, handle },
    idle: () => (inFlight === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
};
