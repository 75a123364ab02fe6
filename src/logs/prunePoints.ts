import type { Clock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import { type Node, NodeError } from "../core/node.ts";
import { formatQuantity, isHash } from "../ethereum/hex.ts";
import { isFields } from "../json/fields.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { type RangeResponse, requestJson } from "./requestLogs.ts";

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
    node.recordPruned(range.from);
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
