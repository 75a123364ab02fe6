import { type Node, NodeError } from "../core/node.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { canonicalLogFilter, withoutWildcards } from "../ethereum/logFilter.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { FetchRange } from "./fetchRange.ts";
import { areCanonical, coversRange, findBlocksWithMissingLogs, holdsBlock, readBlockHash } from "./logCompleteness.ts";
import { orderLogs } from "./mergeLogs.ts";
import { type FetchContext, invalidAnswer, parseNodeLogs } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";
import { hashFilter } from "./segments.ts";

interface Checked {
  readonly logs: readonly ScannedLog[];
  readonly verified: boolean;
}

export type FetchBlock = (job: FetchRange, context: FetchContext) => Promise<readonly ScannedLog[]>;

/** Holds a node's answer against the view's ring, and the node against what it should have. Throws where it does not fit. */
export type CheckLogs = (
  node: Node,
  job: FetchRange,
  logs: readonly ScannedLog[],
  context: FetchContext,
  fetchBlock: FetchBlock,
) => Promise<Checked>;

interface Depth {
  /** The lowest block whose data the node was seen to have. */
  held: bigint;
  asked: { readonly number: bigint; readonly answer: Promise<boolean> } | undefined;
}

const lagging = (node: Node): NodeError => invalidAnswer(node, "The end of a range was left out");

const hasWildcards = ({ filter }: FetchRange): boolean => withoutWildcards(filter) !== filter;

/**
 * Reads the silent blocks' logs with any number of topics, in one request. A bloom does not count topics. With a filter such as
 * `[Transfer, any, any, any]` it matches nearly every block, and each block would need a request.
 */
const askWide = async (
  { from, to, final, filter }: FetchRange,
  silent: readonly bigint[],
  context: FetchContext,
  fetchBlock: FetchBlock,
): Promise<readonly ScannedLog[]> => {
  const wide = withoutWildcards(filter);
  const filterHash = hashFilter(canonicalLogFilter(wide));
  const logs = await fetchBlock({ from, to, final, filter: wide }, { ...context, filterHash });
  const blocks = new Set(silent.map(Number));
  return logs.filter(({ block }) => blocks.has(block));
};

export const createCheckLogs = (): CheckLogs => {
  const depths = new Map<string, Depth>();

  const depthOf = ({ name }: Node): Depth => {
    const depth = depths.get(name) ?? { held: 2n ** 64n, asked: undefined };
    depths.set(name, depth);
    return depth;
  };

  /** Whether the node holds that block and so all above it; asked once for all who want to know about it or a higher one. */
  const holds = async (node: Node, number: bigint, context: RequestContext): Promise<boolean> => {
    const depth = depthOf(node);
    if (number >= depth.held) return true;
    const { asked } = depth;
    if (asked !== undefined && asked.number <= number && (await asked.answer)) return true;
    if (number >= depth.held) return true;
    const answer = holdsBlock((method, params) => parseNodeLogs(node, method, params, context), number).catch(
      (error) => {
        if (error instanceof NodeError && error.kind === "missingData") return false;
        throw error;
      },
    );
    depth.asked = { number, answer };
    try {
      const isHeld = await answer;
      if (isHeld && number < depth.held) depth.held = number;
      return isHeld;
    } finally {
      if (depth.asked?.answer === answer) depth.asked = undefined;
    }
  };

  /** `[]` below a node's pruning point looks like an honest answer: a silent beginning is trusted only where it holds data. */
  const refusePruned = async (node: Node, job: FetchRange, logs: readonly ScannedLog[], context: FetchContext) => {
    const first = logs[0];
    if (first !== undefined && BigInt(first.block) < depthOf(node).held) depthOf(node).held = BigInt(first.block);
    if (first !== undefined && BigInt(first.block) === job.from) return;
    if (await holds(node, job.from, context)) return;
    node.recordPruned(job.from);
    throw new NodeError("missingData", node.name, `Logs of block ${job.from} are pruned`, { code: CODES.SERVER });
  };

  return async (node, job, given, context, fetchBlock) => {
    const { heads } = context.view;
    if (!areCanonical(given, heads)) throw invalidAnswer(node, "Logs of a block that is not canonical");
    if (job.blockHash !== undefined) return { logs: given, verified: true };
    if (job.final) await refusePruned(node, job, given, context);

    const askAgain = (number: bigint) => {
      const block = heads.at(number);
      if (block === undefined) return [];
      const again: FetchRange = {
        ...{ from: number, to: number, blockHash: block.hash, filter: job.filter },
        ...{ final: false, isAgain: true },
      };
      // A final range is held against the node that gave it: a machine that lags does not know the block.
      return fetchBlock(job.final ? { ...again, node } : again, context);
    };
    const silent = findBlocksWithMissingLogs(job, given, heads);
    const asked =
      !job.final && silent.length > 1 && hasWildcards(job)
        ? [askWide(job, silent, context, fetchBlock)]
        : silent.map(askAgain);
    const answers = await Promise.all(asked).catch((error: unknown) => {
      if (error instanceof NodeError && error.kind === "missingData") throw lagging(node);
      throw error;
    });
    const extra = answers.flat();
    if (job.final) {
      if (extra.length > 0) throw lagging(node);
      return { logs: given, verified: true };
    }

    // A block commits to all before it: below the ring, its oldest block stands for the range.
    const anchor = heads.at(job.to) ?? heads.at(heads.oldest) ?? heads.latest;
    const block = await parseNodeLogs(node, "eth_getBlockByNumber", [formatQuantity(anchor.number), false], context);
    if (readBlockHash(block) !== anchor.hash) {
      throw invalidAnswer(node, "The node has left the chain that its logs were asked of");
    }
    const logs = extra.length > 0 ? orderLogs([...given, ...extra]) : given;
    if (logs === undefined) throw invalidAnswer(node, "Logs of two blocks with one number");
    return { logs, verified: coversRange(job, heads) };
  };
};
