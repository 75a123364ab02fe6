import type { Context } from "../core/context.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import { retryCause } from "../core/retryCause.ts";
import { RETRY_RULES } from "../core/retryPolicy.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Call } from "../jsonrpc/call.ts";
import { readResponseBlock } from "../verification/responseBlock.ts";
import type { Verifier } from "../verification/verifier.ts";
import { lacksReceipts } from "./branchCheck.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** The outcome of one sending that may be repeated: a response, or the error of a missing block. */
export interface NodeAttempt {
  readonly response?: RpcResponse;
  readonly error?: NodeError;
  /** The node does not have the requested object. */
  readonly isMissing: boolean;
  /** Number of the block that the node lacks, if `isMissing`. */
  readonly block?: bigint | undefined;
}

const METHOD = Object.freeze({ fwd: "method" } as const);
const MISS = Object.freeze({ fwd: "miss" } as const);

const createResponse = (node: UpstreamNode, body: Uint8Array, request: RpcRequest): RpcResponse => {
  const block = readResponseBlock(body, request.blockField);
  const status = request.write ? METHOD : MISS;
  return block ? { body, node: node.name, status, block } : { body, node: node.name, status };
};

/**
 * Sends `call`, one form of `request`, to the node once, and verifies the response.
 * It rejects with any error but that of a missing block.
 */
export const attemptOnNode = (
  { node, verifier }: { readonly node: UpstreamNode; readonly verifier: Verifier | undefined },
  call: Call,
  request: RpcRequest,
  context: Context,
): Promise<NodeAttempt> => {
  const { heads } = context.view;
  const isVerified = verifier !== undefined && verifier.level !== "off";
  const toAttempt = (body: Uint8Array): NodeAttempt => {
    const isMissing =
      (request.nullIsError === true && (isNull({ body }) || lacksReceipts(body, request, heads))) ||
      request.isComplete?.(body) === false;
    const block = request.isInKnownBlock ? heads.latest.number : request.block?.number;
    return { response: createResponse(node, body, request), isMissing, block };
  };
  const onError = (error: unknown): NodeAttempt => {
    if (error instanceof NodeError && RETRY_RULES[retryCause(error)].node === "sameNode") {
      return { error, isMissing: true, block: request.block?.number };
    }
    throw error;
  };
  return node.send(call, context, { isVerified, isShared: request.write !== true }).then((received) => {
    const verified = isVerified ? verifier.verify({ node, call, request, context }, received) : received;
    return verified instanceof Uint8Array ? toAttempt(verified) : verified.then(toAttempt, onError);
  }, onError);
};
