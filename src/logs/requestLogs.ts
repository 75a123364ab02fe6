import { type Node, NodeError } from "../core/node.ts";
import type { RequestContext, RpcRequest } from "../core/rpcSource.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { SlotOwner } from "../limits/fairScheduler.ts";
import type { FetchRetries } from "./fetchRetries.ts";

/** Counts received bytes; throws if there is no room for them. */
export type CountBytes = (bytes: number) => void;

/** The context that all requests of one log query share. */
export interface FetchContext extends RequestContext {
  readonly owner: SlotOwner;
  readonly filterHash: string;
  readonly countBytes: CountBytes;
  /** The query can plan the range again. False for a part of a planned range. */
  readonly isPlanned?: boolean;
  readonly retries: FetchRetries;
}

const RETRY_LATER = { status: 503, retryAfterSeconds: 1 };

export const invalidAnswer = (node: Node, message: string): NodeError =>
  new NodeError("invalidAnswer", node.name, message, RETRY_LATER);

export const otherBranch = (node: Node, message: string): NodeError =>
  new NodeError("otherBranch", node.name, message, RETRY_LATER);

/** Sends one call to this node only, and returns the text of the result. */
const request = async (
  node: Node,
  call: Call,
  context: RequestContext,
  onBytes: CountBytes | undefined,
): Promise<Uint8Array> => {
  const rpcRequest: RpcRequest = { ...call, retention: "never", canonicalParams: "" };
  const { body } = await node.request(rpcRequest, context);
  if (body instanceof Uint8Array) {
    onBytes?.(body.length);
    return body;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    onBytes?.(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/** Sends one call to this node only, counts the bytes of the response, and returns the text of the result. */
export const requestLogs = (
  node: Node,
  method: string,
  params: readonly unknown[],
  context: RequestContext & Pick<FetchContext, "countBytes">,
): Promise<Uint8Array> => request(node, createCall(method, params), context, context.countBytes);

const decoder = new TextDecoder();

/** Sends one call to this node only, and returns the parsed result. For small results: their bytes are not counted. */
export const requestJson = async (
  node: Node,
  method: string,
  params: readonly unknown[],
  context: RequestContext,
): Promise<unknown> => {
  const text = decoder.decode(await request(node, createCall(method, params), context, undefined));
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new NodeError("invalidAnswer", node.name, `${method}: not JSON`, { cause });
  }
};
