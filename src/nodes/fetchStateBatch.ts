import type { CurrentHeads } from "../core/heads.ts";
import { msUntilHalf } from "../core/lazySignal.ts";
import { NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { StateFetch } from "../core/stateFetch.ts";
import type { Call } from "../jsonrpc/call.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { checkForm } from "../verification/resultForms.ts";
import { isRetryable } from "./errorKind.ts";
import { rankNodes } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface StateNodes {
  readonly nodes: readonly UpstreamNode[];
  readonly heads: CurrentHeads;
}

const decoder = new TextDecoder();

const RETRY_LATER = { status: 503, retryAfterSeconds: 1 } as const;

/** Returns the value, or the error of a response that has none. */
const parse = (node: UpstreamNode, method: string | undefined, outcome: RpcResponse | NodeError): unknown => {
  if (outcome instanceof NodeError) {
    return outcome;
  }
  if (!(outcome.body instanceof Uint8Array)) {
    return new Error("the response is a stream");
  }
  const { name } = node;
  const form = checkForm(method, outcome.body);
  if (form === "wrong" || form === "missing") {
    const error = new UnverifiedError(name, "form", form === "wrong");
    node.recordWrongAnswer(error);
    return error;
  }
  try {
    return JSON.parse(decoder.decode(outcome.body));
  } catch (cause) {
    return new NodeError("invalidAnswer", name, "a state value is not JSON", { ...RETRY_LATER, cause });
  }
};

const isRetryableFailure = (value: unknown): boolean => value instanceof NodeError && isRetryable(value);

/** The outcomes of one node. */
interface Batch {
  readonly node: UpstreamNode;
  readonly outcomes: readonly unknown[];
  readonly failures: number;
}

/** The nodes that may get all of these calls. */
const nodesFor = (nodes: readonly UpstreamNode[], calls: readonly Call[]): readonly UpstreamNode[] =>
  nodes.filter((node) => !node.state.isCordoned && calls.every(({ method }) => node.serves(method)));

/**
 * Sends the calls to one node after another until one answers all. The node with the fewest failures counts. A node that has
 * another one after it gets half of the time that is left.
 */
const fetchFrom = async (
  ranked: readonly UpstreamNode[],
  calls: readonly Call[],
  deadlineMs: number,
): Promise<Batch | undefined> => {
  const { signal } = new AbortController();
  let best: Batch | undefined;
  for (const node of ranked) {
    const isLast = node === ranked.at(-1);
    const scope = { signal, deadlineMs: isLast ? deadlineMs : performance.now() + msUntilHalf(deadlineMs) };
    const outcomes = (await node.batch(calls, scope)).map((outcome, at) => parse(node, calls[at]?.method, outcome));
    const failures = outcomes.filter(isRetryableFailure).length;
    // A node may lack one method of the batch, and the next one all of its state.
    best = best === undefined || failures < best.failures ? { node, outcomes, failures } : best;
    if (failures === 0 || performance.now() >= deadlineMs) {
      break;
    }
  }
  return best;
};

/**
 * Creates the function that reads state in one batch from the best node. It retries on the next node if a read fails, or if the node
 * does not have the block. It rejects with RpcError (503) if no node is available.
 */
export const createBatchFetch =
  (upstreams: StateNodes, timeoutMs: number): StateFetch =>
  async (calls) => {
    const heads = upstreams.heads.current();
    if (heads === undefined) {
      throw unavailable("no upstream node has reported a head yet");
    }
    const ranked = rankNodes(nodesFor(upstreams.nodes, calls), heads.latest, heads);
    const best = await fetchFrom(ranked, calls, performance.now() + timeoutMs);
    if (best === undefined) {
      throw unavailable("no upstream node is available for state");
    }
    return { outcomes: best.outcomes, node: best.node.name };
  };
