import { createHash } from "node:crypto";
import type { Heads, RingBlock } from "../../src/core/heads.ts";
import type { BlockRange } from "../../src/core/logRange.ts";
import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { formatQuantity, type Hash, type Hex } from "../../src/ethereum/hex.ts";
import { type LogFilter, matchesLog } from "../../src/ethereum/logFilter.ts";

export interface FakeLog {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

export interface FakeBlock extends RingBlock {
  readonly logs: readonly FakeLog[];
  /** One per log. */
  readonly transactionHashes: readonly Hash[];
}

export const fakeAddress = (seed: number): Hex => `0x${seed.toString(16).padStart(40, "a")}`;
export const fakeTopic = (seed: number): Hex => `0x${seed.toString(16).padStart(64, "b")}`;

const hashOf = (text: string): Hash => `0x${createHash("sha256").update(text).digest("hex")}`;

const GENESIS_TIME = 1_700_000_000n;
const BLOCK_SECONDS = 2n;

/** Creates the blocks of `base`, then one per element of `logs`. `fork` changes the hashes of the new blocks. */
export const createFakeChain = (
  logs: readonly (readonly FakeLog[])[],
  { base = [], fork = "" }: { readonly base?: readonly FakeBlock[]; readonly fork?: string } = {},
): FakeBlock[] => {
  const blocks = [...base];
  // Many blocks of a large chain share one list of logs.
  const blooms = new Map<readonly FakeLog[], Uint8Array>();
  for (const each of logs) {
    const number = BigInt(blocks.length);
    const parentHash = blocks.at(-1)?.hash ?? hashOf("before genesis");
    const logsBloom = blooms.get(each) ?? bloomOfLogs(each);
    blooms.set(each, logsBloom);
    const hash = hashOf(`${parentHash} ${number} ${fork}`);
    blocks.push({
      number,
      parentHash,
      hash,
      timestamp: GENESIS_TIME + number * BLOCK_SECONDS,
      logsBloom,
      logs: each,
      transactionHashes: each.map((_, index) => hashOf(`${hash} ${index}`)),
    });
  }
  return blocks;
};

export interface FormatOptions {
  readonly timestamps?: boolean;
}

/** Formats the matching logs of one block as in a node's response. */
export const formatLogsOf = (block: FakeBlock, filter: LogFilter, { timestamps = true }: FormatOptions = {}) =>
  block.logs.flatMap((log, index) =>
    matchesLog(filter, log)
      ? [
          {
            ...log,
            blockNumber: formatQuantity(block.number),
            transactionHash: block.transactionHashes[index],
            transactionIndex: formatQuantity(index),
            blockHash: block.hash,
            logIndex: formatQuantity(index),
            removed: false,
            ...(timestamps && { blockTimestamp: formatQuantity(block.timestamp) }),
          },
        ]
      : [],
  );

/** Returns the logs that a plain scan of the chain finds. */
export const plainScan = (
  chain: readonly FakeBlock[],
  filter: LogFilter,
  { from, to }: BlockRange,
  options: FormatOptions = {},
) => chain.slice(Number(from), Number(to) + 1).flatMap((block) => formatLogsOf(block, filter, options));

export const fakeHeads = (
  chain: readonly FakeBlock[],
  { latest = chain.length - 1, finalized, ring = 8192 }: { latest?: number; finalized?: number; ring?: number } = {},
): Heads => {
  const head = chain[latest];
  if (head === undefined) {
    throw new RangeError("No such block");
  }
  const oldest = Math.max(0, latest - ring + 1);
  return {
    latest: head,
    isAgreed: false,
    safe: finalized === undefined ? undefined : chain[finalized],
    finalized: finalized === undefined ? undefined : chain[finalized],
    oldest: BigInt(oldest),
    at: (number) => (number >= BigInt(oldest) && number <= BigInt(latest) ? chain[Number(number)] : undefined),
    header: () => undefined,
  };
};
