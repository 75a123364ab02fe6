import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AuthenticatedCaller } from "../access/access.ts";
import type { InboundRequest } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, type DispatchResult, isWhole } from "../jsonrpc/response.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { formatCacheStatus } from "./cacheStatus.ts";
import type { PassedMessages } from "./passedMessages.ts";
import type { ProofHeader } from "./proofHeader.ts";

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
  /** Value of x-forebay-view: how new the request's view is. Undefined before the first head. */
  readonly view?: string | undefined;
  /** Value of x-forebay-proof: how far the answer is verified. */
  readonly proof?: string | undefined;
  /** The errors in the response. Complete when all chunks are read. */
  readonly errors?: readonly RpcError[] | undefined;
  /** Names and values of further headers, in one flat list. */
  readonly headers?: readonly string[] | undefined;
}

/** The heads of a request when it began and when it ended, its view, and the formatter of the chain's proof headers. */
export interface AnswerHeads {
  readonly first: Heads | undefined;
  readonly last: Heads | undefined;
  /** Value of x-forebay-view. */
  readonly view: string | undefined;
  readonly proofHeader: ProofHeader;
}

/**
 * Creates the response of an endpoint. A call can be repeated in a later view. So the head is that of the weaker of two views:
 * the request's and the current one.
 */
export const toEndpointResponse = (
  { status, retryAfterSeconds, chunks, replies, errors }: DispatchResult<RpcResponse>,
  { progress }: InboundRequest,
  { first, last, view, proofHeader }: AnswerHeads,
): EndpointResponse => {
  const mode = replies.find(({ pending }) => pending !== undefined)?.pending;
  const pending = mode ?? (errors.length > 0 ? progress?.failedPending : undefined);
  const cacheStatus = formatCacheStatus(replies, errors.length);
  const isAgreed = first?.isAgreed === true && last?.isAgreed === true;
  const head = first === undefined ? undefined : isAgreed ? "agreed" : "linked";
  // An error, and an item that follows the first byte of a batch, are stated.
  const proof = chunks.length === 0 ? undefined : proofHeader.format(replies, errors.length === 0 && isWhole(chunks));
  return { status, retryAfterSeconds, chunks, cacheStatus, pending, head, view, proof, errors };
};

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
  /** Serves WebSockets. Without this method, they are passed through. Throws RpcError if the whole upgrade is refused. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, admitted: AuthenticatedCaller): void;
  readonly passthrough?: PassThrough | undefined;
}
