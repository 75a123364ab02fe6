import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { isKnownTransaction } from "./errorKind.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** `known`: the node had the transaction already. `rejected`: it refuses the transaction. `failed`: it did not answer. */
export type BroadcastOutcome = "accepted" | "known" | "rejected" | "failed";

export interface BroadcastOptions {
  send(node: UpstreamNode): Promise<RpcResponse>;
  onOutcome(node: UpstreamNode, outcome: BroadcastOutcome): void;
}

/** Returns the nodes that may get a raw transaction for all nodes: private ones only if there are no others. */
export const publicNodes = (ranked: readonly UpstreamNode[]): readonly UpstreamNode[] => {
  const open = ranked.filter(({ config }) => config.private !== true);
  return open.length > 0 ? open : ranked;
};

const outcomeOf = (error: unknown): BroadcastOutcome => {
  if (!(error instanceof NodeError)) {
    return "failed";
  }
  return isKnownTransaction(error) ? "known" : error.kind === "rejected" ? "rejected" : "failed";
};

/** Whether an error says more to the client than another one: what a node says of the transaction, then the words of a node. */
const weightOf = (error: unknown): number =>
  error instanceof NodeError ? (error.kind === "rejected" ? 2 : error.text === undefined ? 0 : 1) : 0;

/**
 * Sends a raw transaction to each of these nodes once. Resolves with the first success. The error of a node that has it already
 * rejects at once. If all fail, the error that says most does.
 */
export const sendToNodes = (
  nodes: readonly UpstreamNode[],
  { send, onOutcome }: BroadcastOptions,
): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  const errors: unknown[] = [];
  const onError = (node: UpstreamNode, error: unknown): void => {
    const outcome = outcomeOf(error);
    onOutcome(node, outcome);
    errors.push(error);
    if (outcome === "known") {
      reject(error);
    } else if (errors.length === nodes.length) {
      reject(errors.toSorted((one, other) => weightOf(other) - weightOf(one))[0]);
    }
  };
  for (const node of nodes) {
    send(node).then(
      (response) => {
        onOutcome(node, "accepted");
        resolve(response);
      },
      (error: unknown) => onError(node, error),
    );
  }
  return promise;
};
