import { type Clock, systemClock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import { NO_NODE_REACHED, type Node, NodeError, unreachedOr } from "../core/node.ts";
import { PRUNED_CODE } from "../core/retryPolicy.ts";
import { formatQuantity, isHash } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Choice, Lease } from "../limits/fairGate.ts";
import type { FailedNodes } from "./fetchRetries.ts";
import type { LogsOptions } from "./logsOptions.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { blocksOf, type FetchRange } from "./plan.ts";
import { type FetchContext, otherBranch, type RangeResponse, requestJson } from "./requestLogs.ts";

/** Chooses the nodes of fetch ranges, and waits for them. */
export class RangeNodes {
  readonly #options: Pick<LogsOptions, "nodes" | "slots" | "clock">;
  readonly #limits: NodeLimits;

  constructor(options: Pick<LogsOptions, "nodes" | "slots" | "clock">, limits: NodeLimits) {
    this.#options = options;
    this.#limits = limits;
  }

  /** Whether one node has all blocks of the range. */
  hasNodeFor(range: FetchRange): boolean {
    return this.#options.nodes.some((node) => isEligible(node, range) && mayAnswer(node) && hasBlocks(node, range));
  }

  /** Waits for a slot and a node; if all nodes have failed, for the next round. Throws after the last round. */
  async acquire(range: FetchRange, { owner }: FetchContext, failed: FailedNodes): Promise<Lease<Node>> {
    const { slots, clock = systemClock } = this.#options;
    for (;;) {
      const lease = await slots.acquire(owner, () => this.#choose(range, failed));
      if (lease !== undefined) {
        return lease;
      }
      const delayMs = failed.startRound(() => this.#isExpected(range));
      if (delayMs === undefined) {
        throw unreachedOr(failed.mainError, this.#options.nodes) ?? this.#noNode(range);
      }
      await clock.sleep(delayMs, owner.signal);
      owner.signal.throwIfAborted();
    }
  }

  /**
   * Chooses the node for a fetch range among those that have its blocks and have not failed in this round, by their use.
   * A later tier is chosen only if no node of an earlier one is available. It prefers the node that accepts more blocks of the range, then the one with fewer requests in flight.
   */
  #choose(range: FetchRange, failed: FailedNodes): Choice<Node> {
    const { nodes, slots } = this.#options;
    const untried = (range.node === undefined ? nodes : [range.node]).filter(
      (node) => isEligible(node, range) && node.serves("eth_getLogs") && !failed.has(node) && hasBlocks(node, range),
    );
    const accepting = untried.filter((node) => node.accepts("eth_getLogs"));
    const ready = bestUsed(accepting.length > 0 ? accepting : untried);
    const others = ready.filter((node) => node !== range.avoided);
    const available = firstTier(others.length > 0 ? others : ready);
    if (available.length === 0) {
      return "none";
    }
    const size = (node: Node) => Math.min(this.#limits.of(node).blocks, blocksOf(range));
    const [best] = available
      .filter((node) => slots.inFlight(node) < node.maxLogRanges)
      .toSorted((left, right) => size(right) - size(left) || slots.inFlight(left) - slots.inFlight(right));
    return best ?? "busy";
  }

  /**
   * Whether a node will have the range soon. The view has these blocks.
   * A node that has since reported an older head is several machines, and will report the newer head again.
   */
  #isExpected(range: FetchRange): boolean {
    return (
      range.node === undefined &&
      this.#options.nodes.some((node) => isEligible(node, range) && mayAnswer(node) && node.oldest <= range.from)
    );
  }

  /** A node that is behind will have the view's blocks: the view retries that as it retries another branch. */
  #noNode(range: FetchRange): RpcError {
    if (!this.#options.nodes.some(mayAnswer)) {
      return unavailable(NO_NODE_REACHED);
    }
    const message = `No node has the logs of blocks ${range.from} to ${range.to}`;
    if (this.#options.nodes.every(({ oldest }) => oldest > range.from)) {
      return new RpcError(PRUNED_CODE, message);
    }
    const behind = this.#isExpected(range) ? this.#options.nodes.find(mayAnswer) : undefined;
    return behind === undefined ? unavailable(message) : otherBranch(behind, message);
  }
}

/**
 * Whether the range may be requested from the node. Logs are compared with those of another origin that can answer now.
 * A comparison is not worth the wait for a breaker or a rate limit.
 */
const isEligible = ({ origin, available }: Node, { comparedOrigin }: FetchRange): boolean =>
  comparedOrigin === undefined || (origin !== comparedOrigin && available);

const mayAnswer = ({ use }: Node): boolean => use !== "no";

/** The nodes that are tried first: those in use, else spare ones, else those of the last resort. */
const bestUsed = (nodes: readonly Node[]): readonly Node[] => {
  const use = (["yes", "spare", "lastResort"] as const).find((each) => nodes.some((node) => node.use === each));
  return nodes.filter((node) => node.use === use);
};

const hasBlocks = ({ oldest, head }: Node, { from, to }: FetchRange): boolean =>
  oldest <= from && head !== undefined && head >= to;

/** The nodes of the first tier that has one. A range waits for a slot there, because all ranges are in flight for a moment only. */
const firstTier = (nodes: readonly Node[]): readonly Node[] => {
  const first = nodes.reduce((lowest, { priority }) => Math.min(lowest, priority), Number.POSITIVE_INFINITY);
  return nodes.filter(({ priority }) => priority === first);
};

interface PrunePoint {
  /** The lowest block whose data the node was seen to have, and when. */
  lowest: bigint;
  seenAtMs: number;
  /** The check in flight. */
  check: { readonly number: bigint; readonly holds: Promise<boolean> } | undefined;
}

const ABOVE_ALL_BLOCKS = 2n ** 64n;
/** A node may prune old blocks all the time: after this time it is checked again. */
const FORGET_AFTER_MS = 600_000;

/** Learns down to which block each node has data: `[]` below a node's prune horizon looks like a valid response. */
export class PrunePoints {
  readonly #nodes = new Map<string, PrunePoint>();
  readonly #clock: Pick<Clock, "nowMs">;

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  /** Throws if the node has pruned the beginning of a range. An empty one is valid only if the node has its first block. */
  async check({ node, range, logs, context }: RangeResponse): Promise<void> {
    const [first] = logs;
    if (first !== undefined) {
      this.#record(node, BigInt(first.block));
    }
    if (first !== undefined && BigInt(first.block) === range.from) {
      return;
    }
    if (await this.#holds(node, range.from, context)) {
      return;
    }
    node.recordPruned("eth_getLogs", range.from);
    throw new NodeError("missingData", node.name, `Logs of block ${range.from} are pruned`, { code: CODES.SERVER });
  }

  /** Records that the node has the data of a block, and so of all blocks above it. */
  #record(node: Node, number: bigint): void {
    const point = this.#pointOf(node);
    if (number <= point.lowest) {
      point.lowest = number;
      point.seenAtMs = this.#clock.nowMs();
    }
  }

  /** Whether the node has the data of a block. Simultaneous checks of this block, or of a higher one, share one request. */
  async #holds(node: Node, number: bigint, context: Context): Promise<boolean> {
    const point = this.#pointOf(node);
    if (number >= point.lowest) {
      return true;
    }
    const { check } = point;
    if (check !== undefined && check.number <= number && (await check.holds)) {
      return true;
    }
    return number >= point.lowest || this.#ask(node, number, context);
  }

  async #ask(node: Node, number: bigint, context: Context): Promise<boolean> {
    const point = this.#pointOf(node);
    const holds = holdsBlock(node, number, context).catch((error: unknown) => {
      if (error instanceof NodeError && error.kind === "missingData") {
        return false;
      }
      throw error;
    });
    point.check = { number, holds };
    try {
      const isHeld = await holds;
      if (isHeld) {
        this.#record(node, number);
      }
      return isHeld;
    } finally {
      if (point.check?.holds === holds) {
        point.check = undefined;
      }
    }
  }

  #pointOf({ name }: Node): PrunePoint {
    const point = this.#nodes.get(name) ?? { lowest: ABOVE_ALL_BLOCKS, seenAtMs: 0, check: undefined };
    this.#nodes.set(name, point);
    if (this.#clock.nowMs() - point.seenAtMs > FORGET_AFTER_MS) {
      point.lowest = ABOVE_ALL_BLOCKS;
    }
    return point;
  }
}

/**
 * Whether the node still has the data of a block: `[]` for a range below its prune horizon looks like a valid response.
 * It requests the block's receipts. If the node lacks that method, it requests the receipt of the first transaction.
 */
const holdsBlock = async (node: Node, number: bigint, context: Context): Promise<boolean> => {
  const request = (method: string, params: readonly unknown[]) => requestJson(node, method, params, context);
  const quantity = formatQuantity(number);
  try {
    const receipts = await request("eth_getBlockReceipts", [quantity]);
    if (Array.isArray(receipts) && receipts.length > 0) {
      return true;
    }
    if (receipts === null) {
      return false;
    }
  } catch (error) {
    if (!(error instanceof NodeError) || error.kind !== "unsupportedMethod") {
      throw error;
    }
  }
  const block = await request("eth_getBlockByNumber", [quantity, false]);
  if (!isFields(block)) {
    return false;
  }
  const first: unknown = Array.isArray(block.transactions) ? block.transactions[0] : undefined;
  // A block without transactions has no data that could be missing.
  if (!isHash(first)) {
    return true;
  }
  return (await request("eth_getTransactionReceipt", [first])) !== null;
};
