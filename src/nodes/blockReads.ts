import type { CallScope } from "../core/context.ts";
import type { HeaderFields, RingBlock } from "../core/heads.ts";
import { type Node, NodeError } from "../core/node.ts";
import { formatQuantity, type Hash, isData, isHash, isQuantity, parseData, type Quantity } from "../ethereum/hex.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { BackOff } from "./backOff.ts";

/** A sealed block for the block ring, which stores `header` for its newest blocks only. */
export interface SealedBlock {
  readonly block: RingBlock;
  readonly header: HeaderFields | undefined;
}

const BLOOM_HEX_LENGTH = 2 + 2 * 256;

/** Larger numbers are rejected: the ring uses doubles, and no chain has such a block. */
const MAX_NUMBER = BigInt(Number.MAX_SAFE_INTEGER);

const isCountable = (value: Quantity): boolean => BigInt(value) <= MAX_NUMBER;

/**
 * Parses a node's block or header. Returns undefined for `null`, for a pending block without a hash, and for malformed fields.
 */
export const parseSealedBlock = (value: unknown): SealedBlock | undefined => {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const { transactions, uncles, withdrawals, ...header }: Record<string, unknown> = { ...value };
  const { number, hash, parentHash, timestamp, logsBloom } = header;
  if (
    !(isQuantity(number) && isHash(hash) && isHash(parentHash) && isQuantity(timestamp)) ||
    !(isData(logsBloom) && logsBloom.length === BLOOM_HEX_LENGTH) ||
    !(isCountable(number) && isCountable(timestamp))
  ) {
    return undefined;
  }
  return {
    header,
    block: {
      number: BigInt(number),
      hash,
      parentHash,
      timestamp: BigInt(timestamp),
      logsBloom: parseData(logsBloom),
    },
  };
};

/** The lists of a block, which are most of its bytes, and no part of its header. */
const LISTS: ReadonlySet<string> = new Set(["transactions", "uncles", "withdrawals"]);

/** Parses the UTF-8 JSON text of a block, as `parseSealedBlock` does. Returns undefined if it is not JSON. */
const readSealedBlock = (body: Uint8Array): SealedBlock | undefined => {
  try {
    const header = members(body).filter(({ key }) => !LISTS.has(key));
    return parseSealedBlock(Object.fromEntries(header.map(({ key, value }) => [key, parseJson(value)])));
  } catch {
    return undefined;
  }
};

/** A node, as reads of blocks use it. */
export interface BlockReader {
  send(call: Call, scope: CallScope): Promise<Uint8Array>;
}

const TIMEOUT_MS = 5_000;
/** A head that arrives within this time is a vote (docs/architecture.md, Agreement). */
const HEAD_TIMEOUT_MS = 15_000;

export const blockScope = (signal: AbortSignal): CallScope => ({ signal, deadlineMs: performance.now() + TIMEOUT_MS });

/** The scope of reads by which the head of a node is known. */
export const headScope = (signal: AbortSignal): CallScope => ({
  signal,
  deadlineMs: performance.now() + HEAD_TIMEOUT_MS,
  isHeadRead: true,
});

const blockCall = (block: bigint | string) =>
  createCall("eth_getBlockByNumber", [typeof block === "bigint" ? formatQuantity(block) : block, false]);

/** Reads one block by number or tag; returns undefined if the node does not have it. */
export const readBlock = async (
  node: BlockReader,
  block: bigint | "latest",
  signal: AbortSignal,
): Promise<SealedBlock | undefined> =>
  readSealedBlock(await node.send(blockCall(block), block === "latest" ? headScope(signal) : blockScope(signal)));

/** The answer to a poll for the newest block. */
export interface PolledHead {
  readonly head: SealedBlock;
  /** Whether `body` has the transactions themselves. */
  readonly isFull: boolean;
  readonly body: Uint8Array;
}

/** Reads the newest block. Returns undefined if the node has none. */
export const pollHead = async (
  node: BlockReader,
  isFull: boolean,
  signal: AbortSignal,
): Promise<PolledHead | undefined> => {
  const body = await node.send(createCall("eth_getBlockByNumber", ["latest", isFull]), headScope(signal));
  const head = readSealedBlock(body);
  return head && { head, isFull, body };
};

/** Reads blocks by number or tag in one batch, in their order. A block is undefined if the node does not have it. */
export const readBlocks = async (
  node: Pick<Node, "batch">,
  blocks: readonly (bigint | "latest" | "safe" | "finalized")[],
  scope: CallScope,
): Promise<(SealedBlock | NodeError | undefined)[]> => {
  const responses = await node.batch(blocks.map(blockCall), scope);
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
 * After errors it reads none for a while, and then only the first one.
 */
export const readLinked = async (
  node: Pick<Node, "batch"> & { readonly linkReads: BackOff },
  { from, to }: { readonly from: bigint; readonly to: bigint },
  top: Hash,
  signal: AbortSignal,
): Promise<SealedBlock[]> => {
  const { linkReads } = node;
  if (!linkReads.available) {
    return [];
  }
  const count = linkReads.needsTrial ? 1 : Number(to - from) + 1;
  const numbers = Array.from({ length: count }, (_, index) => to - BigInt(index));
  linkReads.begin();
  const blocks = await readBlocks(node, numbers, headScope(signal));
  if (blocks[0] instanceof NodeError) {
    linkReads.failed();
  } else {
    linkReads.succeeded();
  }
  const linked: SealedBlock[] = [];
  let hash = top;
  for (const block of blocks) {
    if (block === undefined || block instanceof NodeError || block.block.hash !== hash) {
      break;
    }
    linked.push(block);
    hash = block.block.parentHash;
  }
  return linked;
};
