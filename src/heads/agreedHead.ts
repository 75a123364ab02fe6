import { readBlock } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { hasBlock } from "./headLeader.ts";

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
  for (const candidate of byNumber) {
    const { block } = candidate.head;
    const origins = await Promise.all(
      offered.map(async ({ node, head }) => {
        const isIts =
          head.block.hash === block.hash || (head.block.number > block.number && (await hasBlock(node, block, signal)));
        return isIts === true ? [node.origin] : [];
      }),
    );
    if (new Set(origins.flat()).size >= required) {
      return candidate;
    }
  }
  return undefined;
};
