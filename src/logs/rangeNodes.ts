import { systemClock } from "../core/clock.ts";
import type { Node } from "../core/node.ts";
import { type RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Choice, Lease } from "../limits/fairGate.ts";
import type { FailedNodes } from "./fetchRetries.ts";
import type { LogsOptions } from "./logsOptions.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { blocksOf, type FetchRange } from "./plan.ts";
import { type FetchContext, otherBranch } from "./requestLogs.ts";

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
  async acquire(range: FetchRange, { owner, filterHash }: FetchContext, failed: FailedNodes): Promise<Lease<Node>> {
    const { slots, clock = systemClock } = this.#options;
    for (;;) {
      const lease = await slots.acquire(owner, () => this.#choose(range, filterHash, failed));
      if (lease !== undefined) {
        return lease;
      }
      const delayMs = failed.startRound(() => this.#isExpected(range));
      if (delayMs === undefined) {
        throw failed.mainError ?? this.#noNode(range);
      }
      await clock.sleep(delayMs, owner.signal);
      owner.signal.throwIfAborted();
    }
  }

  /**
   * Chooses the node for a fetch range among those that have its blocks and have not failed in this round. A node that is
   * suspended or of another chain is not waited for: that may last longer than the request. One whose chain is to be checked again
   * is chosen if no other one is available: the request checks it.
   * A later tier is chosen only if no node of an earlier one is available. It prefers the node that accepts more blocks of the range, then the one with fewer requests in flight.
   */
  #choose(range: FetchRange, filterHash: string, failed: FailedNodes): Choice<Node> {
    const { nodes, slots } = this.#options;
    const untried = (range.node === undefined ? nodes : [range.node]).filter(
      (node) => isEligible(node, range) && node.serves("eth_getLogs") && !failed.has(node) && hasBlocks(node, range),
    );
    const able = untried.filter(mayAnswer);
    if (able.length === 0) {
      // The node decides whether it is tried: it may have recovered.
      return untried.find(({ isRejecting }) => isRejecting) ?? "none";
    }
    const accepting = able.filter((node) => node.accepts("eth_getLogs"));
    const candidates = accepting.length > 0 ? accepting : able;
    const checked = candidates.filter((node) => node.available);
    const ready = checked.length > 0 ? checked : candidates.filter((node) => node.isUnchecked);
    const others = ready.filter((node) => node !== range.avoided);
    const available = firstTier(others.length > 0 ? others : ready);
    if (available.length === 0 && !failed.isWaitUseful) {
      return "none";
    }
    const size = (node: Node) => Math.min(this.#limits.blocks(node, filterHash), blocksOf(range));
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
    const message = `No node has the logs of blocks ${range.from} to ${range.to}`;
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

const mayAnswer = ({ usable, isUnchecked }: Node): boolean => usable || isUnchecked;

const hasBlocks = ({ oldest, head }: Node, { from, to }: FetchRange): boolean =>
  oldest <= from && head !== undefined && head >= to;

/** The nodes of the first tier that has one. A range waits for a slot there, because all ranges are in flight for a moment only. */
const firstTier = (nodes: readonly Node[]): readonly Node[] => {
  const first = nodes.reduce((lowest, { priority }) => Math.min(lowest, priority), Number.POSITIVE_INFINITY);
  return nodes.filter(({ priority }) => priority === first);
};
