import type { Heads } from "../core/heads.ts";
import { type Node, NodeError } from "../core/node.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { canonicalLogFilter, withoutWildcards } from "../ethereum/logFilter.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { hashFilter } from "./cachedSegments.ts";
import { type FetchRange, lastFinal } from "./fetchRange.ts";
import { areCanonical, coversRecent, findBlocksWithMissingLogs, readBlockHash } from "./logCompleteness.ts";
import { orderLogs } from "./mergeLogs.ts";
import { PrunePoints } from "./prunePoints.ts";
import { type FetchContext, invalidAnswer, otherBranch, requestJson } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

/** Logs that passed the checks, with those that the node had left out. */
export interface CheckedLogs {
  readonly logs: readonly ScannedLog[];
  /** The block ring has every block of the range. */
  readonly verified: boolean;
}

export type FetchBlock = (range: FetchRange, context: FetchContext) => Promise<readonly ScannedLog[]>;

/** A node's response to one fetch range. */
export interface LogsToCheck {
  readonly node: Node;
  readonly range: FetchRange;
  readonly logs: readonly ScannedLog[];
  readonly context: FetchContext;
  /** Fetches blocks again whose logs seem to be missing. */
  readonly fetchBlock: FetchBlock;
}

/** Checks a node's logs against the view's block ring, and whether the node can have them. Throws if a check fails. */
export type CheckLogs = (response: LogsToCheck) => Promise<CheckedLogs>;

const lagging = (node: Node): NodeError => invalidAnswer(node, "The node left out the end of a range");

const hasWildcards = ({ filter }: FetchRange): boolean => withoutWildcards(filter) !== filter;

/** An empty beginning of a range is valid only if the node has the data of its first block. */
const rejectPruned = async (points: PrunePoints, { node, range, logs, context }: LogsToCheck): Promise<void> => {
  const first = logs[0];
  if (first !== undefined) {
    points.recordData(node, BigInt(first.block));
  }
  if (first !== undefined && BigInt(first.block) === range.from) {
    return;
  }
  if (await points.holds(node, range.from, context)) {
    return;
  }
  node.recordPruned(range.from);
  throw new NodeError("missingData", node.name, `Logs of block ${range.from} are pruned`, { code: CODES.SERVER });
};

/**
 * Fetches the blocks' logs with any number of topics, in one request. A bloom does not count topics.
 * With a filter such as `[Transfer, any, any, any]` it admits nearly every block, and each block would be one request.
 */
const fetchTogether = async (
  { node, range, context, fetchBlock }: LogsToCheck,
  numbers: readonly bigint[],
): Promise<readonly ScannedLog[]> => {
  const { to, final, filter } = range;
  const from = numbers.at(-1) ?? range.from;
  const wide = withoutWildcards(filter);
  const filterHash = hashFilter(canonicalLogFilter(wide));
  const logs = await fetchBlock({ from, to, final, filter: wide, avoided: node }, { ...context, filterHash });
  const blocks = new Set(numbers.map(Number));
  return logs.filter(({ block }) => blocks.has(block));
};

const fetchAlone = async (
  { node, range: { filter, final }, context, fetchBlock }: LogsToCheck,
  number: bigint,
): Promise<readonly ScannedLog[]> => {
  const block = context.view.heads.at(number);
  if (block === undefined) {
    return [];
  }
  const recheck = { from: number, to: number, blockHash: block.hash, filter, final: false, isRecheck: true } as const;
  // A final range is checked with the node that returned it: a lagging machine does not have the block.
  const own = final ? await fetchBlock({ ...recheck, node }, context) : [];
  // The node may leave out the logs again.
  return own.length > 0 ? own : fetchBlock({ ...recheck, avoided: node }, context);
};

/** A block commits to all blocks before it: below the ring, its oldest block represents the range. */
const anchorOf = ({ to }: FetchRange, heads: Heads) => heads.at(to) ?? heads.at(heads.oldest) ?? heads.latest;

/** Throws if the node is not on the view's branch any more. */
const checkBranch = async ({ node, range, context }: LogsToCheck): Promise<void> => {
  const anchor = anchorOf(range, context.view.heads);
  const block = await requestJson(node, "eth_getBlockByNumber", [formatQuantity(anchor.number), false], context);
  if (readBlockHash(block) !== anchor.hash) {
    throw otherBranch(node, "The node has left the branch of its logs");
  }
};

/** Fetches the logs that are missing according to the blooms of the block ring. */
const fetchMissing = async (response: LogsToCheck): Promise<readonly ScannedLog[]> => {
  const { node, range, logs, context } = response;
  const numbers = findBlocksWithMissingLogs(range, logs, context.view.heads);
  const isTogether = !range.final && numbers.length > 1 && hasWildcards(range);
  const requests = isTogether
    ? [fetchTogether(response, numbers)]
    : numbers.map((number) => fetchAlone(response, number));
  try {
    return (await Promise.all(requests)).flat();
  } catch (error) {
    if (error instanceof NodeError && error.kind === "missingData") {
      await checkBranch(response);
      throw lagging(node);
    }
    throw error;
  }
};

/** Creates the checks of one chain. They learn how far down each node has data. */
export const createCheckLogs = (): CheckLogs => {
  const prunePoints = new PrunePoints();
  return async (response) => {
    const { node, range, logs, context } = response;
    const { heads } = context.view;
    if (range.blockHash !== undefined) {
      // A block by its hash need not be canonical. Its logs have that hash.
      return { logs, verified: true };
    }
    if (!areCanonical(logs, heads)) {
      throw otherBranch(node, "Logs of a block that is not canonical");
    }
    const last = lastFinal(range, heads);
    if (last !== undefined) {
      await rejectPruned(prunePoints, response);
    }
    const missing = await fetchMissing(response);
    // Of the final blocks only the last ones were checked: more logs may be missing.
    if (last !== undefined && missing.some(({ block }) => block <= last)) {
      throw lagging(node);
    }
    if (range.final) {
      return { logs, verified: true };
    }
    await checkBranch(response);
    const complete = missing.length > 0 ? orderLogs([...logs, ...missing]) : logs;
    if (complete === undefined) {
      throw invalidAnswer(node, "Logs of two blocks with one number");
    }
    return { logs: complete, verified: coversRecent(range, heads) };
  };
};
