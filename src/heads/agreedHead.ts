import type { BlockId } from "../core/heads.ts";
import { readBlock } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { trueCopyOf } from "./announcedBlocks.ts";

/** A node's newest block. */
export interface OfferedHead {
  readonly node: UpstreamNode;
  readonly head: SealedBlock;
}

/** Reads a node's newest block. Returns undefined if the node does not answer. */
export const readOffered = (node: UpstreamNode, signal: AbortSignal): Promise<OfferedHead | undefined> =>
  readBlock(node, "latest", signal).then(
    (head) => head && { node, head },
    () => undefined,
  );

const isSameBlock = (one: BlockId, other: BlockId): boolean => one.number === other.number && one.hash === other.hash;

/** Returns the copies of a block that nodes have. A node that does not answer has none. */
const readCopies = async (
  { number, hash }: BlockId,
  offered: readonly OfferedHead[],
  signal: AbortSignal,
): Promise<readonly OfferedHead[]> => {
  const copies = await Promise.all(
    offered.map(async ({ node, head }) => ({
      node,
      head: head.block.number > number ? await readBlock(node, number, signal).catch(() => undefined) : head,
    })),
  );
  return copies.flatMap(({ node, head }) =>
    head && isSameBlock(head.block, { number, hash }) ? [{ node, head }] : [],
  );
};

/**
 * Returns the highest of the heads that `required` origins have. Nodes with higher heads are asked for the block by number,
 * because no ring links their heads yet.
 */
export const findAgreedHead = async (
  offered: readonly OfferedHead[],
  required: number,
  signal: AbortSignal,
): Promise<OfferedHead | undefined> => {
  const byNumber = [...offered].sort((a, b) => Number(b.head.block.number - a.head.block.number));
  // Nodes may offer one block.
  const heads = byNumber
    .map(({ head }) => head)
    .filter(({ block }, at, all) => at === all.findIndex((other) => isSameBlock(other.block, block)));
  const candidates = await Promise.all(
    heads.map(async (head) => ({ head, copies: await readCopies(head.block, offered, signal) })),
  );
  const agreed = candidates.find(({ copies }) => new Set(copies.map(({ node }) => node.origin)).size >= required);
  if (agreed === undefined) {
    return undefined;
  }
  const head = trueCopyOf(
    agreed.head,
    agreed.copies.map((copy) => copy.head),
  );
  return agreed.copies.find((copy) => copy.head === head);
};
