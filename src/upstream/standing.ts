import type { BlockId } from "../chain/heads.ts";
import type { Hash } from "../chain/hex.ts";
import { readBlock } from "./blockReads.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** What a node has at a block's number: that block, another one, or none. */
export type BlockStanding = "held" | "replaced" | "lacking";

/**
 * Whether that block is the node's own, read after the question was put: what it answered before is then of that block's chain.
 * Those who ask while one reading is under way share the next one, so that many cost little.
 */
export const createStanding = (node: UpstreamNode) => {
  const { signal } = new AbortController();
  const waiting = new Map<Hash, Promise<BlockStanding>>();
  let last: Promise<unknown> = Promise.resolve();

  const read = async ({ number, hash }: BlockId): Promise<BlockStanding> => {
    waiting.delete(hash);
    const found = await readBlock(node, number, signal);
    if (found === undefined) return "lacking";
    return found.block.hash === hash ? "held" : "replaced";
  };

  return (block: BlockId): Promise<BlockStanding> => {
    const shared = waiting.get(block.hash) ?? last.then(() => read(block)).catch((): BlockStanding => "lacking");
    waiting.set(block.hash, shared);
    last = shared;
    return shared;
  };
};
