import { type Node, NodeError } from "../core/node.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { holdsBlock } from "./logCompleteness.ts";
import { requestJson } from "./requestLogs.ts";

interface PrunePoint {
  /** The lowest block whose data the node was seen to have. */
  lowest: bigint;
  /** The check in flight. */
  check: { readonly number: bigint; readonly holds: Promise<boolean> } | undefined;
}

const ABOVE_ALL_BLOCKS = 2n ** 64n;

/** Learns down to which block each node has data: `[]` below a node's prune horizon looks like a valid response. */
export class PrunePoints {
  readonly #nodes = new Map<string, PrunePoint>();

  /** Records that the node has the data of a block, and so of all blocks above it. */
  recordData(node: Node, number: bigint): void {
    const point = this.#pointOf(node);
    if (number < point.lowest) {
      point.lowest = number;
    }
  }

  /** Whether the node has the data of a block. Simultaneous checks of this block, or of a higher one, share one request. */
  async holds(node: Node, number: bigint, context: RequestContext): Promise<boolean> {
    const point = this.#pointOf(node);
    if (number >= point.lowest) {
      return true;
    }
    const { check } = point;
    if (check !== undefined && check.number <= number && (await check.holds)) {
      return true;
    }
    return number >= point.lowest || this.#check(node, number, context);
  }

  async #check(node: Node, number: bigint, context: RequestContext): Promise<boolean> {
    const point = this.#pointOf(node);
    const holds = holdsBlock((method, params) => requestJson(node, method, params, context), number).catch(
      (error: unknown) => {
        if (error instanceof NodeError && error.kind === "missingData") {
          return false;
        }
        throw error;
      },
    );
    point.check = { number, holds };
    try {
      const isHeld = await holds;
      if (isHeld) {
        this.recordData(node, number);
      }
      return isHeld;
    } finally {
      if (point.check?.holds === holds) {
        point.check = undefined;
      }
    }
  }

  #pointOf({ name }: Node): PrunePoint {
    const point = this.#nodes.get(name) ?? { lowest: ABOVE_ALL_BLOCKS, check: undefined };
    this.#nodes.set(name, point);
    return point;
  }
}
