import {
  type AskedByHeaders,
  Context,
  type InboundRequest,
  NOT_RECEIVED,
  type Received,
} from "../../../src/core/context.ts";
import type { Heads } from "../../../src/core/heads.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../../../src/core/rpcSource.ts";
import { createCall } from "../../../src/jsonrpc/call.ts";
import { createHeads } from "./heads.ts";

const TIMEOUT_MS = 30_000;
/** Above every node's head, so that no node is on another branch. */
const ABOVE_ALL_HEADS: Heads = {
  ...createHeads({ latest: 2n ** 63n }),
  at: () => undefined,
};

export interface ContextOptions
  extends Partial<Pick<Context, "view" | "deadlineMs" | "bypassCache" | "span">>,
    Partial<Pick<InboundRequest, "caller" | Optional>>,
    Pick<Received, "requestId">,
    Pick<AskedByHeaders, "traceHeaders" | "noCache"> {
  /** Heads of the view; by default above the head of every node. */
  readonly heads?: Heads;
  readonly clientId?: string;
  readonly connection?: object;
}

type Optional = "signal" | "lazySignal" | "memory" | "progress";

/** A request as a transport receives it. */
export const createInbound = (fields: Partial<InboundRequest> = {}): InboundRequest => ({
  caller: { clientId: "test" },
  received: NOT_RECEIVED,
  signal: new AbortController().signal,
  ...fields,
});

/** The context of a client's request, with 30 seconds. */
export const createContext = ({
  heads = ABOVE_ALL_HEADS,
  clientId = "test",
  connection,
  view = { heads },
  deadlineMs = performance.now() + TIMEOUT_MS,
  bypassCache = false,
  span,
  requestId,
  traceHeaders,
  noCache,
  ...request
}: ContextOptions = {}): Context => {
  const received = { headers: {}, asked: { traceHeaders, noCache }, requestId };
  const inbound = createInbound({ caller: { clientId, connection }, received, ...request });
  return new Context(inbound, view, deadlineMs, { bypassCache, span });
};

/** A read of a recent block, unless `fields` has another method or retention class. */
export const createRequest = (fields: Partial<RpcRequest> = {}): RpcRequest => {
  const call = createCall(fields.method ?? "eth_getBalance", fields.params ?? []);
  return { ...call, retention: "recent", canonicalParams: JSON.stringify([call.method, ...call.params]), ...fields };
};

const encoder = new TextEncoder();

/** A response with the result `text` of node1. */
export const createResponse = (text: string, fields: Partial<RpcResponse> = {}): RpcResponse => ({
  body: encoder.encode(text),
  status: {},
  node: "node1",
  ...fields,
});

/** A source that returns the responses of `respond`, and counts the requests. */
export const countingSource = (respond: (request: RpcRequest) => RpcResponse | Promise<RpcResponse>) => {
  const counted = {
    requests: 0,
    request: async (request: RpcRequest): Promise<RpcResponse> => {
      counted.requests += 1;
      return respond(request);
    },
  };
  return counted satisfies RpcSource;
};
