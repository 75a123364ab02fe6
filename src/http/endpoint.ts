import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AuthenticatedCaller } from "../access/access.ts";
import type { InboundRequest, RequestProgress } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, type DispatchResult, isWhole } from "../jsonrpc/response.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { formatCacheStatus } from "./cacheStatus.ts";
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
  /** Value of x-forebay-units: what the request cost at nodes, and what it saved. Undefined unless the client wants it. */
  readonly units?: string | undefined;
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

/** Formats what a request has spent at nodes, and what it has saved: the difference to the price of its calls at a node. */
const formatUnits = ({ spentUnits, directUnits }: RequestProgress): string =>
  `spent=${rounded(spentUnits)}, saved=${rounded(Math.max(0, directUnits - spentUnits))}`;

/** A sum of prices such as 0.1 has digits that mean nothing. */
const rounded = (units: number): number => Number(units.toFixed(3));

/**
 * Creates the response of an endpoint. A call can be repeated in a later view. So the head is that of the weaker of two views:
 * the request's and the current one.
 */
export const toEndpointResponse = (
  { status, retryAfterSeconds, chunks, replies, errors }: DispatchResult<RpcResponse>,
  request: InboundRequest,
  { first, last, view, proofHeader }: AnswerHeads,
): EndpointResponse => {
  const { progress, received } = request;
  const mode = replies.find(({ pending }) => pending !== undefined)?.pending;
  const pending = mode ?? (errors.length > 0 ? progress?.failedPending : undefined);
  const cacheStatus = formatCacheStatus(replies, errors.length);
  const isAgreed = first?.isAgreed === true && last?.isAgreed === true;
  const head = first === undefined ? undefined : isAgreed ? "agreed" : "linked";
  // An error, and an item that follows the first byte of a batch, are stated.
  const proof = chunks.length === 0 ? undefined : proofHeader.format(replies, errors.length === 0 && isWhole(chunks));
  // The calls of a streamed response go on.
  const units = progress && received.asked.wantsUnits === true && isWhole(chunks) ? formatUnits(progress) : undefined;
  return { status, retryAfterSeconds, chunks, cacheStatus, pending, head, view, proof, units, errors };
};

/** Passes requests through that are not JSON-RPC. */
export interface PassThrough {
  /** `body` is undefined if it is still to be read. */
  web(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void;
  close(): void;
}

/** The JSON-RPC service of one path. */
export interface Endpoint {
  /** The name of the chain. */
  readonly chain?: string | undefined;
  /** Handles a body. Throws or rejects with RpcError if the whole request is invalid. */
  handle(body: Uint8Array, request: InboundRequest): Awaitable<EndpointResponse>;
  /** Serves WebSockets. Throws RpcError if the whole upgrade is refused. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, admitted: AuthenticatedCaller): void;
  readonly passthrough?: PassThrough | undefined;
}
