import { brotliCompressSync, constants } from "node:zlib";
import { formatQuantity, type Hash, type Hex } from "../../src/ethereum/hex.ts";
import type { Receipt } from "../../src/ethereum/receipt.ts";

/** Versions of the metadata (docs/reference/flashblocks.md, Metadata). */
export type MetadataGeneration = "a" | "b" | "c" | "d" | "e" | "f";
export type FeedEncoding = "text" | "brotli";

export interface FlashblockBase {
  readonly parent_beacon_block_root: Hash;
  readonly parent_hash: Hash;
  readonly fee_recipient: Hex;
  readonly prev_randao: Hash;
  readonly block_number: Hex;
  readonly gas_limit: Hex;
  readonly timestamp: Hex;
  readonly extra_data: Hex;
  readonly base_fee_per_gas: Hex;
}

export interface FlashblockDiff {
  readonly state_root: Hash;
  readonly receipts_root: Hash;
  readonly logs_bloom: Hex;
  readonly gas_used: Hex;
  readonly block_hash: Hash;
  readonly transactions: readonly Hex[];
  readonly withdrawals: readonly [];
  readonly withdrawals_root: Hash;
  readonly blob_gas_used: Hex;
  /** The transaction that ends the block if it ends now, and gives back gas (Lagoon). */
  readonly post_exec_tx?: Hex;
}

export interface Flashblock {
  readonly payload_id: Hex;
  readonly index: number;
  readonly base?: FlashblockBase;
  readonly diff: FlashblockDiff;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface MetadataSource {
  readonly blockNumber: number;
  /** Receipts of this message's transactions only. */
  readonly receipts: ReadonlyMap<Hash, Receipt>;
  /** Balances of all accounts that the block has changed so far. */
  readonly balances: ReadonlyMap<Hex, bigint>;
  /** `<block>-<index>` of the message before. */
  readonly previous: string;
}

const TAGS = new Map([
  [0, "Legacy"],
  [1, "Eip2930"],
  [2, "Eip1559"],
  [4, "Eip7702"],
  [0x7e, "Deposit"],
]);

const formatReceipt = (receipt: Receipt, status: unknown) => ({
  status,
  cumulativeGasUsed: formatQuantity(receipt.cumulativeGasUsed),
  logs: receipt.logs,
  ...(receipt.depositNonce === undefined ? {} : { depositNonce: formatQuantity(receipt.depositNonce) }),
  ...(receipt.depositReceiptVersion === undefined
    ? {}
    : { depositReceiptVersion: formatQuantity(receipt.depositReceiptVersion) }),
});

export const formatMetadata = (generation: MetadataGeneration, source: MetadataSource): Record<string, unknown> => {
  const number = { block_number: source.blockNumber };
  const receipts = (format: (receipt: Receipt) => unknown) =>
    Object.fromEntries([...source.receipts].map(([hash, receipt]) => [hash, format(receipt)]));
  const tagged = (receipt: Receipt) => ({
    type: formatQuantity(receipt.type),
    ...formatReceipt(receipt, receipt.status === true ? "0x1" : "0x0"),
  });
  const new_account_balances = Object.fromEntries(
    [...source.balances].map(([address, balance]) => [address, formatQuantity(balance)]),
  );
  switch (generation) {
    case "a":
      return {
        ...number,
        new_account_balances,
        receipts: receipts((receipt) => ({
          [TAGS.get(receipt.type) ?? "Unknown"]: formatReceipt(receipt, receipt.status === true ? "0x1" : "0x0"),
        })),
      };
    case "b":
      return { ...number, new_account_balances, receipts: receipts(tagged) };
    case "c":
      return number;
    case "d":
      return {
        ...number,
        new_account_balances,
        receipts: receipts((receipt) => ({ ...tagged(receipt), status: receipt.status })),
        access_list: null,
      };
    case "e":
      return { ...number, access_list: null };
    case "f":
      return { ...number, access_list: null, prev_flashblock_id: source.previous };
  }
};

/** Encodes a WebSocket frame. A string is a text frame. */
export const encodeFrame = (message: Flashblock, encoding: FeedEncoding): string | Uint8Array => {
  const text = JSON.stringify(message);
  if (encoding === "text") {
    return text;
  }
  const bytes = Buffer.from(text);
  // Quality and window of the reference proxy.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 22 };
  return brotliCompressSync(bytes, { params });
};
