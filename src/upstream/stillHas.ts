import type { BlockId } from "../chain/heads.ts";
import type { Hash } from "../chain/hex.ts";
import { readBlock } from "./blockReads.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/**
 * Whether that block is the node's own, read after the question was put: what it answered before is then of that block's chain.
 * Those who ask while one reading is under way share the next one, so that many cost little.
 */
export const createStillHas = (node: UpstreamNode) => {
  const { signal } = new AbortController();
  const waiting = new Map<Hash, Promise<boolean>>();
  let last: Promise<unknown> = Promise.resolve();

  const read = async ({ number, hash }: BlockId): Promise<boolean> => {
    waiting.delete(hash);
    return (await readBlock(node, number, signal))?.block.hash === hash;
  };

  return (block: BlockId): Promise<boolean> => {
    const shared = waiting.get(block.hash) ?? last.then(() => read(block)).catch(() => false);
    waiting.set(block.hash, shared);
    last = shared;
    return shared;
  };
};
