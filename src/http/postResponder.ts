import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Awaitable } from "../jsonrpc/call.ts";
import { errorResult, isWhole } from "../jsonrpc/response.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { type MemoryBudget, type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import type { EndpointResponse } from "./endpoint.ts";
import type { HttpRequest } from "./httpRequest.ts";
import type { HttpTelemetry } from "./httpTelemetry.ts";
import { writeResponse } from "./writeResponse.ts";

/**
 * Creates a function that runs tasks when this turn of the event loop has read all sockets.
 * Responses that are written together wake their readers once. A write between two reads costs more than the response
 * itself. A task must not throw.
 */
const createEndOfTick = (): ((task: () => void) => void) => {
  let tasks: (() => void)[] = [];
  const run = (): void => {
    const due = tasks;
    tasks = [];
    for (const task of due) {
      task();
    }
  };
  return (task) => {
    if (tasks.length === 0) {
      setImmediate(run);
    }
    tasks.push(task);
  };
};

export interface PostResponderOptions {
  /** Counts bodies, and responses that wait for slow readers. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  /** A connection whose client reads nothing of a response for this time is closed. */
  readonly writeTimeoutMs: number;
  /** Returns the header names and values of every response to this request, in one flat list. */
  commonHeaders(request: IncomingMessage): readonly string[];
}

/** The response to a request that no endpoint answered. Its chunks are whole. */
export const rejected = (error: RpcError, id?: Uint8Array) => {
  const { status, retryAfterSeconds = status === 429 ? 1 : undefined } = error;
  // RFC 9110, section 15.5.2. Browsers do not ask their user for a bearer token.
  const headers = status === 401 ? ["WWW-Authenticate", "Bearer"] : undefined;
  return { ...errorResult(error, id), cacheStatus: "forebay; detail=refused", retryAfterSeconds, headers };
};

/**
 * Time to discard the rest of a body that is too large. Without it, the sender gets a reset instead of the response.
 */
const LINGER_MS = 2_000;

/** Differs by up to a half: clients that are refused in one turn do not all connect again in one turn. */
const lingerMs = (): number => LINGER_MS * (1 - Math.random() / 2);

const OVERLOADED = 503;

/** Reads no more of a connection. The HTTP parser resumes it again and again. */
const stopReading = (socket: Socket): void => {
  const pause = (): void => {
    socket.pause();
  };
  socket.on("resume", pause);
  pause();
};

/** Returns the names and values of the headers of an answer, in one flat list. `common` are those of every response. */
export const answerHeaders = (
  { cacheStatus, pending, head, view, proof, units, retryAfterSeconds, headers: further }: EndpointResponse,
  requestId: string,
  common: readonly string[] = [],
): string[] => {
  const headers = [
    "Content-Type",
    "application/json",
    "Cache-Status",
    cacheStatus,
    "x-request-id",
    requestId,
    ...common,
  ];
  if (pending !== undefined) {
    headers.push("x-forebay-pending", pending);
  }
  if (head !== undefined) {
    headers.push("x-forebay-head", head);
  }
  if (view !== undefined) {
    headers.push("x-forebay-view", view);
  }
  if (proof !== undefined) {
    headers.push("x-forebay-proof", proof);
  }
  if (units !== undefined) {
    headers.push("x-forebay-units", units);
  }
  if (retryAfterSeconds !== undefined) {
    headers.push("Retry-After", String(retryAfterSeconds));
  }
  if (further !== undefined) {
    headers.push(...further);
  }
  return headers;
};

/** Writes the responses to POSTs, and counts their bytes. */
export class PostResponder {
  readonly #options: PostResponderOptions;
  readonly #telemetry: HttpTelemetry;
  readonly #nextRequestId: (headers: IncomingHttpHeaders) => string;
  readonly #endOfTick = createEndOfTick();
  readonly #waiting: WaitingResponses | undefined;

  constructor(
    options: PostResponderOptions,
    telemetry: HttpTelemetry,
    nextRequestId: (headers: IncomingHttpHeaders) => string,
  ) {
    this.#options = options;
    this.#telemetry = telemetry;
    this.#nextRequestId = nextRequestId;
    const { memory, writeTimeoutMs } = options;
    this.#waiting = memory && new WaitingResponses({ memory, writeTimeoutMs });
  }

  /** Writes a response at the end of this turn of the event loop. */
  respond(post: HttpRequest, endpointResponse: EndpointResponse): void {
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

  /** Sends the error of a request that was not admitted. */
  reject(error: RpcError, request: IncomingMessage, response: ServerResponse, id: Uint8Array): void {
    const requestId = this.#nextRequestId(request.headers);
    this.#writeError(rejected(error, id), { message: request, response, requestId }, error.status === 429);
    response.end();
  }

  /**
   * Sends the error of a body that is not read. Ends the connection after the sender had time to read the error.
   * `discards`: the rest of the body is read. Reading can cost more than the request itself, and a server without room reads none.
   */
  rejectUnread(post: HttpRequest, error: RpcError, discards = error.status !== OVERLOADED): void {
    const { message: request, response } = post;
    this.#writeError(rejected(error), post, true);
    const end = (): void => {
      clearTimeout(timer);
      response.end();
    };
    const timer = setTimeout(end, lingerMs());
    request.once("end", end).once("close", end);
    request.resume();
    if (!discards) {
      // The client has the response before the connection ends. A request that does not flow would hold what has arrived.
      stopReading(request.socket);
    }
  }

  /** Writes an error whose response is still to be ended. */
  #writeError(
    answer: ReturnType<typeof rejected>,
    { message, response, requestId }: Pick<HttpRequest, "message" | "response" | "requestId">,
    closes: boolean,
  ): void {
    const body = Buffer.concat(answer.chunks);
    const headers = answerHeaders(answer, requestId, this.#options.commonHeaders(message));
    headers.push("Content-Length", String(body.length), ...(closes ? ["Connection", "close"] : []));
    this.#telemetry.countResponse(answer.status);
    response.writeHead(answer.status, headers).write(body);
  }

  #countSent({ caller }: HttpRequest, bytes: number): void {
    caller.usage?.send(bytes);
  }

  /** Returns the length of the body. */
  #write(post: HttpRequest, endpointResponse: EndpointResponse): Awaitable<number> {
    const { status, chunks } = endpointResponse;
    const { message, response } = post;
    const headers = answerHeaders(endpointResponse, post.requestId, this.#options.commonHeaders(message));
    this.#telemetry.countResponse(status);
    response.statusCode = status;
    const bytes = writeResponse(response, headers, chunks, message.headers["accept-encoding"]);
    if (bytes instanceof Promise) {
      // A compressed response is another buffer, and a stream has been read when it resolves.
      return bytes.then((known) => {
        this.#countWaiting(post, []);
        return known;
      });
    }
    if (response.writableLength > 0) {
      this.#countWaiting(post, isWhole(chunks) ? chunks : []);
    }
    return bytes;
  }

  /** Counts a response that its client has not read yet. From now on the response itself counts, and not the request. */
  #countWaiting(post: HttpRequest, chunks: readonly Uint8Array[]): void {
    if (this.#waiting !== undefined && post.response.writableLength > 0) {
      post.releaseMemory();
      this.#waiting.add(post.response, chunks, post.caller.clientId);
    }
  }

  /** Breaks the connection: part of the response may be sent, and the client must not take it for the whole. */
  #fail({ response, requestId }: HttpRequest, error: unknown): void {
    response.destroy();
    this.#telemetry.logBroken(error, requestId);
  }
}

/** A response without room in the budget must be read within this time. */
const GRACE_MS = 1_000;

interface Pin {
  readonly use: MemoryUse;
  responses: number;
}

/** The large buffers that responses wait to send. A buffer of several responses, such as a cached one, counts once. */
class PinnedBuffers {
  readonly #memory: MemoryBudget;
  readonly #pins = new Map<ArrayBufferLike, Pin>();

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** Returns false if there is no room. The buffer counts for the client that pins it first. */
  add({ buffer, length }: Uint8Array, clientId: string): boolean {
    const pin = this.#pins.get(buffer);
    if (pin !== undefined) {
      pin.responses++;
      return true;
    }
    const use = this.#memory.open("responses", clientId);
    const hasRoom = use.tryAdd(length);
    this.#pins.set(buffer, { use, responses: 1 });
    return hasRoom;
  }

  remove({ buffer }: Uint8Array): void {
    const pin = this.#pins.get(buffer);
    if (pin === undefined) {
      return;
    }
    pin.responses--;
    if (pin.responses === 0) {
      pin.use.end();
      this.#pins.delete(buffer);
    }
  }
}

interface WaitingResponsesOptions {
  readonly memory: MemoryBudget;
  /** A connection whose client reads nothing for this time is closed. */
  readonly writeTimeoutMs: number;
}

/** The responses whose bytes wait for slow readers. */
class WaitingResponses {
  readonly #options: WaitingResponsesOptions;
  readonly #buffers: PinnedBuffers;

  constructor(options: WaitingResponsesOptions) {
    this.#options = options;
    this.#buffers = new PinnedBuffers(options.memory);
  }

  /** Counts a response that is written, but not sent yet. */
  add(response: ServerResponse, chunks: readonly Uint8Array[], clientId: string): void {
    const { memory, writeTimeoutMs } = this.#options;
    const large = chunks.filter(({ length }) => length > UNCOUNTED_BYTES);
    const largeBytes = large.reduce((sum, { length }) => sum + length, 0);
    const remainder = memory.open("responses", clientId);
    let hasRoom = remainder.tryAdd(Math.max(0, response.writableLength - largeBytes));
    for (const chunk of large) {
      hasRoom = this.#buffers.add(chunk, clientId) && hasRoom;
    }
    // Node closes the connection if no byte was read in this time. The next request has the usual timeout again.
    // A response behind another one on its connection has no socket of its own yet.
    response.req.socket.setTimeout(writeTimeoutMs);
    const timer = hasRoom ? undefined : setTimeout(() => response.destroy(), GRACE_MS);
    response.once("close", () => {
      clearTimeout(timer);
      remainder.end();
      for (const chunk of large) {
        this.#buffers.remove(chunk);
      }
    });
  }
}
