import type { CallScope } from "../core/context.ts";
import { type Node, NodeError } from "../core/node.ts";
import { formatQuantity, type Hash } from "../ethereum/hex.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { readSealedBlock, type SealedBlock } from "./sealedBlock.ts";

/** A node, as reads of blocks use it. */
export interface BlockReader {
  send(call: Call, scope: CallScope): Promise<Uint8Array>;
}

const TIMEOUT_MS = 5_000;

const scopeOf = (signal: AbortSignal) => ({ signal, deadlineMs: performance.now() + TIMEOUT_MS });

const blockCall = (block: bigint | string) =>
  createCall("eth_getBlockByNumber", [typeof block === "bigint" ? formatQuantity(block) : block, false]);

/** Reads one block by number or tag; returns undefined if the node does not have it. */
export const readBlock = async (
  node: BlockReader,
  block: bigint | "latest",
  signal: AbortSignal,
): Promise<SealedBlock | undefined> => readSealedBlock(await node.send(blockCall(block), scopeOf(signal)));

/** Reads a block of any branch. Returns undefined if the node does not have it. */
export const readBlockByHash = async (
  node: BlockReader,
  hash: Hash,
  signal: AbortSignal,
): Promise<SealedBlock | undefined> =>
  readSealedBlock(await node.send(createCall("eth_getBlockByHash", [hash, false]), scopeOf(signal)));

/** Reads blocks by number or tag in one batch, in their order. A block is undefined if the node does not have it. */
export const readBlocks = async (
  node: Pick<Node, "batch">,
  blocks: readonly (bigint | "safe" | "finalized")[],
  signal: AbortSignal,
): Promise<(SealedBlock | NodeError | undefined)[]> => {
  const responses = await node.batch(blocks.map(blockCall), scopeOf(signal));
  return responses.map((response) => {
    if (response instanceof NodeError) {
      return response;
    }
    return response.body instanceof Uint8Array ? readSealedBlock(response.body) : undefined;
  });
};

/**
 * Reads the blocks of `from` to `to` in descending order; the block at `to` must have the hash `top`.
 * It stops at the first block that is not the parent of the one above it.
 * Such a block comes from a second machine behind the URL, or from a reorganisation during the read.
 */
export const readLinked = async (
  node: Pick<Node, "batch">,
  range: { readonly from: bigint; readonly to: bigint },
  top: Hash,
  signal: AbortSignal,
): Promise<SealedBlock[]> => {
  const numbers = Array.from({ length: Number(range.to - range.from) + 1 }, (_, index) => range.to - BigInt(index));
  const linked: SealedBlock[] = [];
  let hash = top;
  for (const block of await readBlocks(node, numbers, signal)) {
    if (block === undefined || block instanceof NodeError || block.block.hash !== hash) {
      break;
    }
    linked.push(block);
    hash = block.block.parentHash;
  }
  return linked;
};
