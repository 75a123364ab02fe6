import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { StateFetch } from "../evm/nodeState.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { isRetryable } from "../nodes/errorKind.ts";
import { rankNodes } from "../nodes/nodeSelection.ts";
import type { Upstreams } from "./upstreams.ts";

const decoder = new TextDecoder();

const parse = (outcome: RpcResponse | NodeError): unknown => {
  if (outcome instanceof NodeError) return outcome;
  return outcome.body instanceof Uint8Array ? JSON.parse(decoder.decode(outcome.body)) : new Error("a streamed value");
};

const failed = (outcome: RpcResponse | NodeError): boolean => outcome instanceof NodeError && isRetryable(outcome.kind);

/** State reads in one batch, from the best node; from another where that one fails or lacks the block. */
export const createStateFetcher =
  (upstreams: Upstreams, timeoutMs: number): StateFetch =>
  async (calls) => {
    const reach = { signal: AbortSignal.timeout(timeoutMs), deadlineMs: performance.now() + timeoutMs };
    const heads = upstreams.heads.current();
    if (heads === undefined) throw unavailable("no node has told its head yet");
    let last: readonly (RpcResponse | NodeError)[] | undefined;
    for (const node of rankNodes(upstreams.nodes, heads.latest, heads)) {
      last = await node.batch(calls, reach);
      if (!last.some(failed)) break;
    }
    if (last === undefined) throw unavailable("no node can be asked for state");
    return last.map(parse);
  };
