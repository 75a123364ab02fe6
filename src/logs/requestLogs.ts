import { type Node, NodeError } from "../core/node.ts";
import type { RequestContext, RpcRequest } from "../core/rpcSource.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { SlotOwner } from "../limits/fairScheduler.ts";

/** Takes note of bytes that came in; throws where there is no room for them. */
export type TakeBytes = (bytes: number) => void;

/** What everything that is fetched for one query shares. */
export interface FetchContext extends RequestContext {
  readonly asker: SlotOwner;
  readonly filterHash: string;
  readonly take: TakeBytes;
}

export const invalidAnswer = (node: Node, message: string): NodeError =>
  new NodeError("invalidAnswer", node.name, message, { status: 503, retryAfterSeconds: 1 });

/** Asks this one node, and no other; the text of its result. */
export const requestLogs = async (
  node: Node,
  method: string,
  params: readonly unknown[],
  context: RequestContext,
  take: TakeBytes = () => {},
): Promise<Uint8Array> => {
  const question: RpcRequest = { ...createCall(method, params), retention: "never", canonicalParams: "" };
  const { body } = await node.request(question, context);
  if (body instanceof Uint8Array) {
    take(body.length);
    return body;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    take(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const decoder = new TextDecoder();

/** The same for a small answer, parsed. */
export const parseNodeLogs = async (
  node: Node,
  method: string,
  params: readonly unknown[],
  context: RequestContext,
): Promise<unknown> => {
  const text = decoder.decode(await requestLogs(node, method, params, context));
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new NodeError("invalidAnswer", node.name, `${method}: not JSON`, { cause });
  }
};
