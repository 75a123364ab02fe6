import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { readBlock } from "./blockReads.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** What a node has at a block's number: that block, another one, or none; `unknown` where it did not say. */
export type BlockPresence = "held" | "replaced" | "lacking" | "unknown";

/**
 * Whether that block is the node's own, read after the question was put: what it answered before is then of that block's chain.
 * Those who ask while a reading of that block is under way share the next one, so that many cost little.
 */
export const createBlockPresence = (node: UpstreamNode) => {
  const { signal } = new AbortController();
  const waiting = new Map<Hash, Promise<BlockPresence>>();
  const last = new Map<Hash, Promise<BlockPresence>>();

  const read = async ({ number, hash }: BlockId): Promise<BlockPresence> => {
    waiting.delete(hash);
    const found = await readBlock(node, number, signal);
    if (found === undefined) return "lacking";
    return found.block.hash === hash ? "held" : "replaced";
  };

  const begin = (block: BlockId): Promise<BlockPresence> => {
    const reading = (last.get(block.hash) ?? Promise.resolve())
      .then(() => read(block))
      .catch((): BlockPresence => "unknown")
      .finally(() => {
        if (last.get(block.hash) === reading) last.delete(block.hash);
      });
    waiting.set(block.hash, reading);
    last.set(block.hash, reading);
    return reading;
  };

  return (block: BlockId): Promise<BlockPresence> => waiting.get(block.hash) ?? begin(block);
};
