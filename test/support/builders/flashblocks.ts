import { type Data, formatQuantity, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import type { FeedMessage } from "../../../src/feed/feedMessage.ts";
import { parseFlashblock } from "../../../src/feed/parseFlashblock.ts";

export const hashOf = (number: bigint | number): Hash => `0x${number.toString(16).padStart(64, "0")}`;
export const payloadOf = (number: bigint | number): Data => `0x${number.toString(16).padStart(16, "0")}`;

/** A transaction that is not executed: only its bytes and its hash count. */
export const raw = (value: number): Data => `0x02${value.toString(16).padStart(12, "0")}`;
export const txHash = (value: number): Hash => keccak256Hex(parseData(raw(value)));

export interface WireOptions {
  readonly payload?: Data;
  readonly number?: bigint;
  readonly parentHash?: Hash;
  readonly transactions?: readonly Data[];
  readonly gasUsed?: bigint;
  readonly blockHash?: Hash;
  readonly metadata?: unknown;
  readonly timestamp?: bigint;
}

/** One message in wire format. By default the parent of block N has hash N - 1, and its payload id is N. */
export const wireMessage = (index: number, options: WireOptions = {}): Record<string, unknown> => {
  const number = options.number ?? 101n;
  return {
    payload_id: options.payload ?? payloadOf(number),
    index,
    ...(index === 0
      ? {
          base: {
            parent_beacon_block_root: hashOf(0),
            parent_hash: options.parentHash ?? hashOf(number - 1n),
            fee_recipient: "0x4200000000000000000000000000000000000011",
            prev_randao: hashOf(7),
            block_number: formatQuantity(number),
            gas_limit: "0x1c9c380",
            timestamp: formatQuantity(options.timestamp ?? 1_700_000_000n + number * 2n),
            extra_data: "0x",
            base_fee_per_gas: "0x7",
          },
        }
      : {}),
    diff: {
      state_root: hashOf(0),
      receipts_root: hashOf(1),
      logs_bloom: `0x${"00".repeat(256)}`,
      gas_used: formatQuantity(options.gasUsed ?? BigInt(index + 1) * 21_000n),
      block_hash: options.blockHash ?? hashOf(number * 1_000n + BigInt(index)),
      transactions: options.transactions ?? [],
      withdrawals: [],
      withdrawals_root: hashOf(0),
      blob_gas_used: "0x0",
    },
    metadata: options.metadata ?? { block_number: Number(number) },
  };
};

export const flashblock = (index: number, options: WireOptions = {}): FeedMessage => {
  const parsed = parseFlashblock(JSON.stringify(wireMessage(index, options)));
  if (!("message" in parsed)) {
    throw new Error(JSON.stringify(parsed));
  }
  return parsed.message;
};
