import type { BlockId } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { readBlock, readBlocks } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Background } from "./blockBackfill.ts";
import type { CanonicalChain, Finality } from "./canonicalChain.ts";
import { hasBlock } from "./headLeader.ts";

export interface FinalityFollowerOptions extends Background {
  readonly finality: Finality;
  /** One node of each origin with a vote, and the number of them that must report a block as safe or final. */
  readonly reporters: () => { readonly nodes: readonly UpstreamNode[]; readonly required: number };
}

/** A block that a node reported as safe or final. */
interface Report extends BlockId {
  readonly node: UpstreamNode;
}

const TAGS = ["safe", "finalized"] as const;

const PERIOD_MS = 12_000;
/**
 * While a chain is idle, a node gets up to 50 requests a minute in total.
 * On a chain with 2 s blocks these are 30 for latest, 5 for finality and 5 for the backfill.
 */
const IDLE_PERIOD_MS = 24_000;
const FIRST_PERIOD_MS = 500;

/** The errors of a node that has no such block or does not know the tag. Any other error says nothing about it. */
const NO_BLOCK: ReadonlySet<NodeErrorKind> = new Set([
  "missingData",
  "tagUnsupported",
  "invalidParams",
  "unsupportedMethod",
]);

/** Reads what a node reports for each tag. */
const readTags = async (node: UpstreamNode, signal: AbortSignal): Promise<readonly (BlockId | "none" | "failed")[]> => {
  try {
    const blocks = await readBlocks(node, TAGS, signal);
    return blocks.map((block) => {
      if (block instanceof NodeError) {
        return NO_BLOCK.has(block.kind) ? "none" : "failed";
      }
      return block?.block ?? "none";
    });
  } catch {
    return TAGS.map(() => "failed");
  }
};

/** Reads safe and finalized blocks: the highest that enough origins report at or above. */
class FinalityFollower {
  readonly #options: FinalityFollowerOptions;
  /** Whether an origin supports a tag: true once it has reported a block, undefined before its first answer. */
  readonly #supports = { safe: new Map<string, boolean>(), finalized: new Map<string, boolean>() };

  constructor(options: FinalityFollowerOptions) {
    this.#options = options;
  }

  async read(): Promise<void> {
    const { canonical, finality, leader, signal } = this.#options;
    const { ring, heads } = canonical;
    if (!ring || !heads) {
      return;
    }
    if (finality === "node") {
      await this.#readTags(canonical);
      return;
    }
    const node = leader();
    const number = ring.latest.number - BigInt(finality.depth);
    if (node && heads.finalized === undefined && number >= 0n) {
      const block = (await readBlock(node, number, signal))?.block;
      canonical.setTags({ safe: block, finalized: block });
    }
  }

  async #readTags(canonical: CanonicalChain): Promise<void> {
    const { reporters, signal } = this.#options;
    const { nodes, required } = reporters();
    const reports = await Promise.all(nodes.map(async (node) => ({ node, blocks: await readTags(node, signal) })));
    const tags = await Promise.all(
      TAGS.map((tag, index) => {
        const supports = this.#supports[tag];
        const reported = reports.flatMap(({ node, blocks }): Report[] => {
          const block = blocks[index] ?? "failed";
          if (block === "failed" || block === "none") {
            if (block === "none" && !supports.has(node.origin)) {
              supports.set(node.origin, false);
            }
            return [];
          }
          supports.set(node.origin, true);
          return [{ number: block.number, hash: block.hash, node }];
        });
        const supporters = nodes.filter(({ origin }) => supports.get(origin) !== false).length;
        return this.#agreedTag(reported, Math.min(required, supporters), canonical.heads?.[tag]);
      }),
    );
    const [safe, finalized] = tags;
    canonical.setTags({ safe, finalized });
  }

  /** Returns the highest block that `required` origins report at or above, if it is above `before`. */
  async #agreedTag(
    reports: readonly Report[],
    required: number,
    before: BlockId | undefined,
  ): Promise<BlockId | undefined> {
    const { canonical, signal } = this.#options;
    const descending = [...reports].sort((a, b) => Number(b.number - a.number));
    for (const [index, report] of descending.entries()) {
      if (index + 1 < required || required === 0) {
        continue;
      }
      if (before !== undefined && report.number <= before.number) {
        return undefined;
      }
      // The ring has the hash of a recent block. Other origins must have an older one under the same hash.
      if (required === 1 || canonical.ring?.at(report.number)?.hash === report.hash) {
        return report;
      }
      const has = await Promise.all(descending.slice(0, index + 1).map(({ node }) => hasBlock(node, report, signal)));
      if (has.filter((isIts) => isIts === true).length >= required) {
        return report;
      }
    }
    return undefined;
  }
}

/**
 * Reads the safe and finalized blocks of the origins.
 * If the operator has set a finality depth, it reads only the block at that depth.
 */
export const createFinalityFollower = (options: FinalityFollowerOptions): { read(): Promise<void> } => {
  const { canonical, pause, signal, isIdle } = options;
  const follower = new FinalityFollower(options);

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await follower.read().catch(() => undefined);
      const periodMs = canonical.ring ? (isIdle() ? IDLE_PERIOD_MS : PERIOD_MS) : FIRST_PERIOD_MS;
      await pause(periodMs);
    }
  };

  void run();
  return follower;
};
