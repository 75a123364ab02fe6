import { NodeError, type NodeErrorKind } from "./node.ts";

/**
 * The cause of a retry: the kind of a node's error, or a response that is not usable.
 * `missingData` is two causes: a block that is not there (yet), or data that the node has pruned.
 */
export type RetryCause =
  | Exclude<NodeErrorKind, "missingData">
  | "missingBlock"
  | "prunedData"
  | "unexpectedNull"
  | "outsideView"
  | "unavailable";

/** Which time has passed before a hedge: the least wait, or the 95th percentile of the node for the method. */
export type HedgeReason = "minimum" | "quantile";

/** `sameNode`: the same node again after a delay, if it announced the block. */
type NodeRetry = "never" | "sameNode";
/**
 * `otherNode`: a node that was not tried yet. `anyNode`: the same, and no attempt, because the node lacks the data and any other one may
 * have it. `sameNodeLater`: a node that was not tried yet, or else the best one with such an error again, after a delay.
 */
type PoolRetry = "never" | "otherNode" | "anyNode" | "sameNodeLater";
/**
 * A range of eth_getLogs. `otherNode`: nodes that were not tried in this round. `nextRound`: after them this node again, after
 * a delay. `split`: smaller ranges; other nodes if the range cannot be split.
 */
type LogsRetry = "never" | "otherNode" | "nextRound" | "split";
/** `newView`: in the view of refreshed heads, if they have changed. `waitForView`: also after a delay, until they change. */
type ViewRetry = "never" | "newView" | "waitForView";

export interface RetryRule {
  /** The meaning of the cause, for the table in docs/nodes.md. */
  readonly meaning: string;
  readonly node: NodeRetry;
  readonly pool: PoolRetry;
  readonly logs: LogsRetry;
  readonly view: ViewRetry;
}

/**
 * The retry rules of each cause. The policies are nested: the view's contains the pool's, and the pool's contains the node's.
 * For eth_getLogs the view's contains only that of logs.
 */
export const RETRY_RULES: Readonly<Record<RetryCause, RetryRule>> = {
  missingBlock: {
    meaning: "the node does not have the block, or has its header but not its data",
    node: "sameNode",
    pool: "anyNode",
    logs: "otherNode",
    view: "newView",
  },
  unexpectedNull: {
    meaning: "`null` for an object that must exist",
    node: "sameNode",
    pool: "anyNode",
    logs: "never",
    view: "never",
  },
  outsideView: {
    meaning: "an empty response of a node that is behind, or a response that cannot be matched with the view",
    node: "never",
    pool: "otherNode",
    logs: "never",
    view: "newView",
  },
  otherBranch: {
    meaning: "the node is behind the view, or the response belongs to another branch or to a block above the view",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "waitForView",
  },
  prunedData: {
    meaning: "the node has pruned the state or history",
    node: "never",
    pool: "anyNode",
    logs: "otherNode",
    view: "newView",
  },
  unverified: {
    meaning: "the response failed verification",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "newView",
  },
  unreachable: {
    meaning: "no connection, or HTTP status 5xx",
    node: "never",
    pool: "sameNodeLater",
    logs: "nextRound",
    view: "newView",
  },
  invalidAnswer: {
    meaning: "the response is not JSON-RPC, or not complete",
    node: "never",
    pool: "sameNodeLater",
    logs: "nextRound",
    view: "newView",
  },
  rateLimited: {
    meaning: "the node limits the rate, or its budget is exhausted",
    node: "never",
    pool: "sameNodeLater",
    logs: "nextRound",
    view: "never",
  },
  overloaded: {
    meaning: "too many calls wait for the node, and the call was not sent",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "never",
  },
  timeout: {
    meaning: "the node did not respond in time",
    node: "never",
    pool: "otherNode",
    logs: "nextRound",
    view: "never",
  },
  billing: {
    meaning: "the provider's plan is exhausted",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "newView",
  },
  unauthorized: {
    meaning: "the node rejects the credentials",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "newView",
  },
  tagUnsupported: {
    meaning: "the node does not support the block parameter",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "never",
  },
  unsupportedMethod: {
    meaning: "the node does not support the method",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "never",
  },
  unavailable: {
    meaning: "no node can be used now",
    node: "never",
    pool: "never",
    logs: "never",
    view: "newView",
  },
  tooLarge: {
    meaning: "the range or the response is too large",
    node: "never",
    pool: "never",
    logs: "split",
    view: "never",
  },
  revert: { meaning: "the execution reverted", node: "never", pool: "never", logs: "otherNode", view: "never" },
  rejected: {
    meaning: "the node rejected a transaction",
    node: "never",
    pool: "never",
    logs: "otherNode",
    view: "never",
  },
  executionFailed: {
    meaning: "the execution failed, for example because it was out of gas",
    node: "never",
    pool: "never",
    logs: "otherNode",
    view: "never",
  },
  invalidParams: {
    meaning: "the parameters are invalid",
    node: "never",
    pool: "never",
    logs: "otherNode",
    view: "never",
  },
  cancelled: {
    meaning: "no caller waits for the response, or the memory budget has no room for it",
    node: "never",
    pool: "never",
    logs: "otherNode",
    view: "never",
  },
  other: {
    meaning: "any other error",
    node: "never",
    pool: "otherNode",
    logs: "otherNode",
    view: "never",
  },
};

/** How often, and after which delays. The deadline of the request ends every wait earlier. */
export const RETRY_LIMITS = {
  /** One node: one retry after each of these delays, shared by all forms of one request. */
  node: { delaysMs: [50, 100, 200] },
  /**
   * A node that sends no byte for `quietMs` while requests are in flight gets a probe. The probe has `connectMs` to connect, and then
   * `answerMs`. Without a response the node is the last choice, is probed every `reprobeMs`, and its reads are retried elsewhere.
   */
  hang: { quietMs: 1_000, connectMs: 700, answerMs: 300, reprobeMs: 5_000 },
  /**
   * All nodes: `chains[].upstream.attempts` in all. The delay applies to nodes that were tried before, and doubles.
   */
  pool: { defaultAttempts: 3, firstDelayMs: 100 },
  /**
   * The first retry of a read is free. Further ones are limited to this part of the chain's reads. So many are saved up at most.
   */
  budget: { share: 0.2, saved: 100 },
  /**
   * One range of eth_getLogs: a new round over the nodes after each of the delays. Blocks of the range that are fetched again
   * share them. A part of a split range is a range of its own.
   */
  logs: { delaysMs: [50, 100, 200] },
  /** One request of a client: in this many views; each of the delays once, for `waitForView`. Each retry refreshes heads. */
  view: { maxViews: 3, delaysMs: [50, 100, 200, 400], maxRefreshMs: 500 },
} as const;

/**
 * Whether a message says that the block itself is not there (yet), in contrast to pruned state or history. EIP-1474's
 * "resource not found" is anvil's error for a hash that a reorganisation replaced. It must not count as pruned data.
 */
export const isMissingBlock = (message: string): boolean =>
  /header (for hash )?not found|beyond (current )?head block|unknown block|could not find block|block .*could not be found|block .*not found|resource not found|block ?out ?of ?range/i.test(
    message,
  );

/** The code of pruned history in the execution API. */
export const PRUNED_CODE = 4444;

/** Returns the row of RETRY_RULES for a node's error. */
export const retryCause = ({ kind, message, code }: NodeError): RetryCause => {
  if (kind !== "missingData") {
    return kind;
  }
  return code !== PRUNED_CODE && isMissingBlock(message) ? "missingBlock" : "prunedData";
};

/** The error for a client if all nodes have pruned the data: in the words of one of them. */
export const prunedEverywhere = ({ node, message }: NodeError): NodeError =>
  new NodeError("missingData", node, message, { code: PRUNED_CODE });

/** The text of a node for a range whose first block is above its own head, too. */
const INVALID_RANGE = /invalid block range/i;

/** Whether a node says that it does not have the blocks of a valid range. If they are at or below forebay's head, it is behind. */
export const isNotYet = (error: unknown): error is NodeError =>
  error instanceof NodeError && (retryCause(error) === "missingBlock" || INVALID_RANGE.test(error.message));
