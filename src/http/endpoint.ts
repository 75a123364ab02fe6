import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AuthenticatedCaller } from "../access/access.ts";
import type { InboundRequest } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, type DispatchResult, isStream, isWhole } from "../jsonrpc/response.ts";
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

/**
 * Creates the response of an endpoint. A call can be repeated in a later view. So the head is that of the weaker of two views:
 * the request's and the current one.
 */
export const toEndpointResponse = (
  { status, retryAfterSeconds, chunks, replies, errors }: DispatchResult<RpcResponse>,
  { progress }: InboundRequest,
  first: Heads | undefined,
  last: Heads | undefined,
): EndpointResponse => {
  const mode = replies.find(({ pending }) => pending !== undefined)?.pending;
  const pending = mode ?? (errors.length > 0 ? progress?.failedPending : undefined);
  const cacheStatus = formatCacheStatus(replies, errors.length);
  const isAgreed = first?.isAgreed === true && last?.isAgreed === true;
  const head = first === undefined ? undefined : isAgreed ? "agreed" : "linked";
  return { status, retryAfterSeconds, chunks, cacheStatus, pending, head, errors };
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
    if (isWhole(response.chunks)) {
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

/** Formats a string of RFC 8941, section 3.3.3, which is printable ASCII. Only `detail` is free text. */
const formatString = (text: string): string => `"${text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "\\$&")}"`;

/** The statuses of a hit, which need no formatting. */
const HITS: Readonly<Record<NonNullable<CacheStatus["hit"]>, string>> = {
  memory: "forebay; hit; detail=memory",
  disk: "forebay; hit; detail=disk",
  redis: "forebay; hit; detail=redis",
  state: "forebay; hit; detail=state",
  view: "forebay; hit; detail=view",
  local: "forebay; hit; detail=local",
};

const formatOne = ({ hit, fwd, stored, collapsed, detail }: CacheStatus): string => {
  let text = "forebay";
  if (hit !== undefined) {
    text = HITS[hit];
  } else if (fwd !== undefined) {
    text += `; fwd=${fwd}`;
  }
  if (stored === true) {
    text += "; stored";
  }
  if (collapsed === true) {
    text += "; collapsed";
  }
  if (detail !== undefined && hit === undefined) {
    text += `; detail=${formatString(detail)}`;
  }
  return text;
};

/** A batch is a hit if all its calls are. Otherwise `fwd` has the reason, and `detail` the number of hits. */
const formatMany = (statuses: readonly CacheStatus[], errors: number): string => {
  const hits = statuses.filter(({ hit }) => hit !== undefined).length;
  const calls = statuses.length + errors;
  const detail = `detail="${hits} of ${calls} hits"`;
  if (hits === calls) {
    return `forebay; hit; ${detail}`;
  }
  if (hits > 0) {
    return `forebay; fwd=partial; ${detail}`;
  }
  const reasons = new Set(statuses.map(({ fwd }) => fwd ?? "miss"));
  return `forebay; fwd=${reasons.size === 1 ? [...reasons].join() : "miss"}; ${detail}`;
};

/** Formats the Cache-Status header (RFC 9211) of one response. `errors` is the number of failed calls of a batch. */
export const formatCacheStatus = (responses: readonly Pick<RpcResponse, "status">[], errors = 0): string => {
  const [first] = responses;
  if (first === undefined) {
    return errors === 0 ? "forebay" : "forebay; detail=error";
  }
  if (responses.length === 1 && errors === 0) {
    return formatOne(first.status);
  }
  return formatMany(
    responses.map(({ status }) => status),
    errors,
  );
};

export interface Route {
  /** Path of the request's target, without query and trailing slash. */
  readonly path: string;
  /** Endpoint of exactly this path. */
  readonly endpoint: Endpoint | undefined;
  /** Proxy for requests that are not JSON-RPC. */
  readonly passthrough: PassThrough | undefined;
  /** The name of the chain of endpoint or proxy. */
  readonly chain: string | undefined;
  /** Target of the request at the proxy. */
  readonly target: string;
}

/** Returns path and query of a target, which may be an absolute URL (RFC 9112, section 3.2.2). */
const originForm = (target: string): string => {
  if (target.startsWith("/")) {
    return target;
  }
  if (!URL.canParse(target)) {
    return "/";
  }
  const { pathname, search } = new URL(target);
  return pathname + search;
};

/**
 * Creates the router, which decides by the path alone.
 * Paths below `/<name>/` use the proxy of that chain, without the prefix.
 */
export const createRouter = (routes: ReadonlyMap<string, Endpoint>) => {
  const parse = (requestTarget: string): Route => {
    const target = originForm(requestTarget);
    const [pathWithoutQuery = "/"] = target.split("?", 1);
    const path =
      pathWithoutQuery.length > 1 && pathWithoutQuery.endsWith("/") ? pathWithoutQuery.slice(0, -1) : pathWithoutQuery;
    const chainPath = `/${path.split("/", 2)[1] ?? ""}`;
    const chainEndpoint = chainPath === "/" ? undefined : routes.get(chainPath);
    const targetInChain = target.slice(chainPath.length);
    return chainEndpoint === undefined
      ? {
          path,
          endpoint: routes.get(path),
          passthrough: routes.get("/")?.passthrough,
          chain: (routes.get(path) ?? routes.get("/"))?.chain,
          target,
        }
      : {
          path,
          endpoint: routes.get(path),
          passthrough: chainEndpoint.passthrough,
          chain: chainEndpoint.chain,
          target: targetInChain.startsWith("/") ? targetInChain : `/${targetInChain}`,
        };
  };
  const parsed = new Map([...routes.keys()].map((path) => [path, parse(path)]));
  return (target: string): Route => parsed.get(target) ?? parse(target);
};
