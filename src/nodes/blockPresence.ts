import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { readBlock } from "./blockReads.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** Whether a node has a block, another block at its number, or none; `unknown` if the read failed. */
export type BlockPresence = "present" | "replaced" | "missing" | "unknown";

/**
 * Creates the function that reads whether a node has a block.
 * A read that starts after a response verifies that the response belongs to the block's branch.
 * Calls during a read of the same block share the next read.
 */
export const createBlockPresence = (node: UpstreamNode) => {
  const { signal } = new AbortController();
  const waiting = new Map<Hash, Promise<BlockPresence>>();
  const last = new Map<Hash, Promise<BlockPresence>>();

  const read = async ({ number, hash }: BlockId): Promise<BlockPresence> => {
    waiting.delete(hash);
    const block = await readBlock(node, number, signal);
    if (block === undefined) {
      return "missing";
    }
    return block.block.hash === hash ? "present" : "replaced";
  };

  const begin = (block: BlockId): Promise<BlockPresence> => {
    const reading = (last.get(block.hash) ?? Promise.resolve())
      .then(() => read(block))
      .catch((): BlockPresence => "unknown")
      .finally(() => {
        if (last.get(block.hash) === reading) {
          last.delete(block.hash);
        }
      });
    waiting.set(block.hash, reading);
    last.set(block.hash, reading);
    return reading;
  };

  return (block: BlockId): Promise<BlockPresence> => waiting.get(block.hash) ?? begin(block);
};
