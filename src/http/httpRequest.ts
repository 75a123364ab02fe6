import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { AuthenticatedCaller } from "../access/access.ts";
import type { AskedByHeaders, InboundRequest, Received, RequestProgress } from "../core/context.ts";
import { LazySignal } from "../core/lazySignal.ts";
import { mayBeginJsonRpc } from "../jsonrpc/isJsonRpc.ts";
import type { ResultMemory } from "../jsonrpc/response.ts";
import { type MemoryBudget, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import { Pieces } from "../limits/pieces.ts";
import { readAsked } from "./requestHeaders.ts";
import { RequestMemory } from "./requestMemory.ts";

/**
 * Limit for receiving a whole request with its body, so that a slow sender does not hold a connection forever.
 * It includes the time in which a connection is not read, because its pipelined requests wait. So headers have no lower limit.
 */
export const REQUEST_TIMEOUT_MS = 60_000;

/** Accepted ids of clients: characters that are safe in a log and in a header. */
const REQUEST_ID = /^[\w.:-]{1,128}$/;

/** Creates the source of request ids: the client's x-request-id, else an id that is unique among replicas. */
export const createRequestIds = (): ((headers: IncomingHttpHeaders) => string) => {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  return ({ "x-request-id": header }) => {
    if (typeof header === "string" && REQUEST_ID.test(header)) {
      return header;
    }
    count++;
    return `${prefix}-${count.toString(36)}`;
  };
};

/**
 * One POST from its headers to its response. It is its own `received`, `memory` and `progress`, so a cache hit needs no other object.
 * A class because of its getters: see LazyCall in jsonrpc/envelope.ts.
 */
export class PostRequest implements InboundRequest, Received, RequestProgress, ResultMemory {
  readonly headers: IncomingHttpHeaders;
  /** The target, as the client sent it. */
  readonly url: string;
  readonly caller: AuthenticatedCaller;
  readonly requestId: string;
  readonly asked: AskedByHeaders;
  readonly lazySignal = new LazySignal();
  hasNodePlace = false;
  stateReads = 0;
  spentUnits = 0;
  directUnits = 0;
  failedPending: RequestProgress["failedPending"];
  readonly #budget: MemoryBudget | undefined;
  #held: RequestMemory | undefined;
  #isDetached = false;
  #isDisconnected = false;

  constructor(
    { headers, url = "/" }: Pick<IncomingMessage, "headers" | "url">,
    caller: AuthenticatedCaller,
    requestId: string,
    budget: MemoryBudget | undefined,
  ) {
    this.headers = headers;
    this.url = url;
    this.caller = caller;
    this.requestId = requestId;
    this.asked = readAsked(headers);
    this.#budget = budget;
  }

  /** Aborted when the client disconnects. Created on first use, because a cache hit never needs it. */
  get signal(): AbortSignal {
    return this.lazySignal.signal;
  }

  get received(): this {
    return this;
  }

  get progress(): this {
    return this;
  }

  /** Undefined once it is detached: its results are not counted. */
  get memory(): this | undefined {
    return this.#isDetached ? undefined : this;
  }

  /** Announces a body of this length. Returns false if there will be no room. A refusal is counted. */
  announceBody(bytes: number): boolean {
    return bytes <= UNCOUNTED_BYTES || (this.#memory?.announceBody(bytes) ?? true);
  }

  /** Counts bytes of the body that have arrived. Returns false if there is no room. */
  holdBody(bytes: number): boolean {
    return this.#memory?.holdBody(bytes) ?? true;
  }

  holdCalls(calls: number, running: number): boolean {
    return this.#memory?.holdCalls(calls, running) ?? true;
  }

  hold(result: Uint8Array): boolean {
    return this.#memory?.hold(result) ?? true;
  }

  drop(result: Uint8Array): void {
    this.#held?.drop(result);
  }

  holdResponse(bytes: number): boolean {
    return this.#memory?.holdResponse(bytes) ?? true;
  }

  /** Counts a body that waits for its calls, unless it was counted while it was read. It cannot be refused any more. */
  holdParsedBody(bytes: number): void {
    if (this.#held?.hasBody !== true) {
      this.holdBody(bytes);
    }
  }

  /** The request holds neither body nor results any more. */
  releaseMemory(): void {
    this.#held?.release();
  }

  /** Lets its calls continue when the client disconnects. Call it before they start. */
  detach(): void {
    this.#isDetached = true;
  }

  /** Whether the client disconnected before its response was written. */
  get isDisconnected(): boolean {
    return this.#isDisconnected;
  }

  /** Records that the client disconnected before its response was written. */
  disconnect(): void {
    this.#isDisconnected = true;
    if (!this.#isDetached) {
      this.lazySignal.abort();
    }
  }

  get #memory(): RequestMemory | undefined {
    this.#held ??= this.#budget && new RequestMemory(this.#budget, this.caller.clientId);
    return this.#held;
  }
}

/** A POST over HTTP. */
export class HttpRequest extends PostRequest {
  readonly message: IncomingMessage;
  readonly response: ServerResponse;

  constructor(
    { message, response }: { readonly message: IncomingMessage; readonly response: ServerResponse },
    caller: AuthenticatedCaller,
    requestId: string,
    budget: MemoryBudget | undefined,
  ) {
    super(message, caller, requestId, budget);
    this.message = message;
    this.response = response;
  }
}

/** The announced length of a body. 0: none, or unknown. */
export const bodyLength = ({ headers }: IncomingMessage): number => Number(headers["content-length"] ?? 0);

interface BodyLimits {
  /** The announced length. */
  readonly length: number;
  readonly maxBytes: number;
}

/** Counts the bytes of a body. */
type BodyMemory = Pick<PostRequest, "announceBody" | "holdBody">;

/** The reason why a body is not read to its end. */
export type UnreadReason = "tooLarge" | "tooManyPieces" | "overBudget";

export type ReadBody = Buffer | UnreadReason;

/**
 * Reads the request's body and calls `onBody` with it, or with the reason why it is not read.
 * The bytes of a body count from the time when the rest of it must be waited for.
 * Does not call it if the client disconnects. A callback, because a promise costs more than reading a small body.
 */
export const readBody = (
  request: Readable,
  { length, maxBytes }: BodyLimits,
  onBody: (body: ReadBody) => void,
  memory?: BodyMemory,
): void => {
  if (length > maxBytes || memory?.announceBody(length) === false) {
    onBody(length > maxBytes ? "tooLarge" : "overBudget");
    return;
  }
  const pieces = new Pieces();
  let isRefused = false;
  // The listener stays and discards the remaining chunks.
  const refuse = (reason: UnreadReason): void => {
    isRefused = true;
    pieces.clear();
    onBody(reason);
  };
  request.on("data", (chunk: Buffer) => {
    if (isRefused) {
      return;
    }
    const isWhole = chunk.length === length;
    if (pieces.bytes + chunk.length > maxBytes) {
      refuse("tooLarge");
    } else if (!isWhole && memory?.holdBody(chunk.length) === false) {
      refuse("overBudget");
    } else {
      pieces.add(chunk);
      if (pieces.areTooMany) {
        refuse("tooManyPieces");
      }
    }
  });
  request.on("end", () => {
    if (!isRefused) {
      onBody(pieces.join());
    }
  });
};

/** The body of a request that is passed through: the whole of one that may be JSON-RPC. Any other is not read. */
export type PassedBody = ReadBody | "unread";

/** More white space than this is read as JSON is, so that it counts. */
const MAX_SPACE_BYTES = 4 * 1024;

/** Whether a request has a body. */
export const hasBody = (request: IncomingMessage): boolean =>
  request.headers["transfer-encoding"] !== undefined || bodyLength(request) > 0;

/**
 * Reads the body of a request if it may be JSON-RPC, as `readBody` does. Its first bytes decide.
 * Any other body remains to be read, with its first bytes.
 */
export const readPassedBody = (
  request: IncomingMessage,
  maxBytes: number,
  onBody: (body: PassedBody) => void,
  memory: BodyMemory,
): void => {
  let start: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    const mayBegin = mayBeginJsonRpc(start) ?? (start.length > MAX_SPACE_BYTES ? true : undefined);
    if (mayBegin === undefined) {
      return;
    }
    request.off("data", onData).off("end", onEnd).pause();
    request.unshift(start);
    if (mayBegin) {
      readBody(request, { length: bodyLength(request), maxBytes }, onBody, memory);
      request.resume();
    } else {
      onBody("unread");
    }
  };
  const onEnd = (): void => onBody(start);
  request.on("data", onData).on("end", onEnd);
};
