import type { Node } from "../core/node.ts";
import type { SharedValues } from "../core/sharedValues.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { MAX_RANGE_BLOCKS, rangeBlocksFor } from "./plan.ts";

/** A provider may raise a limit: after this time it is learned again. */
const TTL_SECONDS = 86_400;

const keyOf = ({ name }: Node): string => `log-limits:${name}`;

export interface SharedLimitsOptions {
  readonly chain: string;
  readonly nodes: readonly Node[];
  readonly limits: NodeLimits;
  /** Undefined without Redis. */
  readonly values: SharedValues | undefined;
  readonly telemetry: Telemetry;
}

/** The limits of all nodes of one chain. Other processes read them from Redis, so that they need no refused request. */
export class SharedLimits {
  readonly #options: SharedLimitsOptions;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    options.limits.onLearn = (node, learned) => {
      this.#report(node);
      options.values?.set(keyOf(node), learned.save(), TTL_SECONDS);
    };
  }

  /** Reads the limits of nodes that were not asked for as many blocks yet. Never rejects. */
  async load(blocks: number): Promise<void> {
    const { nodes, limits, values } = this.#options;
    const untried = nodes.filter((node) => !limits.isTried(node, Math.min(blocks, MAX_RANGE_BLOCKS)));
    if (values === undefined || untried.length === 0) {
      return;
    }
    await Promise.all(
      untried.map(async (node) => {
        const saved = await values.get(keyOf(node));
        if (saved !== undefined) {
          limits.restore(node, saved);
          this.#report(node);
        }
      }),
    );
  }

  /** Blocks of one fetch range, for the available node that accepts most. */
  readonly rangeBlocks = (filterHash: string): number => {
    const { nodes, limits } = this.#options;
    const available = nodes.filter((node) => node.available);
    return available.length === 0
      ? MAX_RANGE_BLOCKS
      : rangeBlocksFor(Math.max(...available.map((node) => limits.blocks(node, filterHash))));
  };

  /** Whether a node has accepted a range of this many blocks, or has refused any. */
  readonly isTried = (blocks: number): boolean => {
    const { nodes, limits } = this.#options;
    return nodes.some((node) => limits.isTried(node, blocks));
  };

  #report(node: Node): void {
    const { chain, limits, telemetry } = this.#options;
    const limit = limits.rangeLimit(node);
    telemetry.metrics.upstreamSpanLimit.set({ chain, node: node.name }, Number.isFinite(limit) ? limit : 0);
  }
}
