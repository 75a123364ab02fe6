import { NodeError } from "../core/node.ts";
import { formatQuantity, type Hash } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { readSealedBlock, type SealedBlock } from "./sealedBlock.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

const TIMEOUT_MS = 5_000;

const reach = (signal: AbortSignal) => ({ signal, deadlineMs: performance.now() + TIMEOUT_MS });

const blockCall = (block: bigint | string) =>
  createCall("eth_getBlockByNumber", [typeof block === "bigint" ? formatQuantity(block) : block, false]);

/** One block by number or tag; undefined where the node has none there. */
export const readBlock = async (
  node: UpstreamNode,
  block: bigint | "latest",
  signal: AbortSignal,
): Promise<SealedBlock | undefined> => readSealedBlock(await node.send(blockCall(block), reach(signal)));

/** Blocks by number or tag in one batch; undefined for each that the node did not give. */
export const readBlocks = async (
  node: UpstreamNode,
  blocks: readonly (bigint | "safe" | "finalized")[],
  signal: AbortSignal,
): Promise<(SealedBlock | undefined)[]> => {
  const answers = await node.batch(blocks.map(blockCall), reach(signal));
  return answers.map((answer) =>
    answer instanceof NodeError || !(answer.body instanceof Uint8Array) ? undefined : readSealedBlock(answer.body),
  );
};

/**
 * The blocks of `from` to `to`, descending from the one whose hash is `top`; as many of them as are linked.
 * A node that is several machines, or reorganises meanwhile, gives blocks that do not fit.
 */
export const readLinked = async (
  node: UpstreamNode,
  range: { readonly from: bigint; readonly to: bigint },
  top: Hash,
  signal: AbortSignal,
): Promise<SealedBlock[]> => {
  const numbers = Array.from({ length: Number(range.to - range.from) + 1 }, (_, index) => range.to - BigInt(index));
  const linked: SealedBlock[] = [];
  let hash = top;
  for (const block of await readBlocks(node, numbers, signal)) {
    if (block?.block.hash !== hash) {
      break;
    }
    linked.push(block);
    hash = block.block.parentHash;
  }
  return linked;
};
