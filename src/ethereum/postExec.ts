import { RLP } from "@ethereumjs/rlp";
import { createBloom } from "./bloom.ts";
import { formatData, formatQuantity, type Hash, ZERO_ADDRESS } from "./hex.ts";
import { keccak256Hex } from "./keccak.ts";
import type { Receipt } from "./receipt.ts";
import { concatBytes, encodeList, encodeNumber } from "./rlp.ts";

/** The transaction that ends a block since Lagoon. Other chains have used this type for something else. */
export const POST_EXEC_TYPE = 0x7d;

const VERSION = 1n;
const UINT64_BYTES = 8;

/** Gas that a block gives back to one of its transactions. */
export interface GasRefund {
  /** Of the transaction in the block. Deposits count. */
  readonly index: number;
  readonly gasRefund: bigint;
}

/**
 * The last transaction of a block, which gives back gas to earlier ones. It has no signature, no nonce and no fee.
 * Source: https://specs.optimism.io/protocol/lagoon/post-exec.html
 */
export interface PostExec {
  /** The EIP-2718 bytes, as in a block. */
  readonly raw: Uint8Array;
  readonly hash: Hash;
  /** The bytes without the type. */
  readonly input: Uint8Array;
  readonly blockNumber: bigint;
  /** In the order of their indexes. There is at least one. */
  readonly refunds: readonly GasRefund[];
}

/** Encodes the transaction as EIP-2718 bytes. The payload is the list itself. */
export const encodePostExec = (blockNumber: bigint, refunds: readonly GasRefund[]): Uint8Array =>
  concatBytes([
    Uint8Array.of(POST_EXEC_TYPE),
    encodeList([
      encodeNumber(VERSION),
      encodeNumber(blockNumber),
      encodeList(refunds.map(({ index, gasRefund }) => encodeList([encodeNumber(index), encodeNumber(gasRefund)]))),
    ]),
  ]);

type Item = Uint8Array | readonly Item[] | undefined;

const listOf = (item: Item): readonly Item[] => (Array.isArray(item) ? item : []);

const numberOf = (item: Item): bigint | undefined => {
  if (!(item instanceof Uint8Array) || item.length > UINT64_BYTES) {
    return undefined;
  }
  return item.length === 0 ? 0n : BigInt(formatData(item));
};

const refundOf = (item: Item): GasRefund | undefined => {
  const [index, gasRefund] = listOf(item).map(numberOf);
  const isValid = index !== undefined && index <= Number.MAX_SAFE_INTEGER && gasRefund !== undefined && gasRefund > 0n;
  return isValid ? { index: Number(index), gasRefund } : undefined;
};

const isRising = (refunds: readonly GasRefund[]): boolean =>
  refunds.every(({ index }, at) => index > (refunds[at - 1]?.index ?? -1));

const decode = (payload: Uint8Array): Item => {
  try {
    return RLP.decode(payload);
  } catch {
    return undefined;
  }
};

/** Parses the bytes without the type. Returns undefined for any other bytes: the type alone says nothing (see POST_EXEC_TYPE). */
export const parsePostExecInput = (input: Uint8Array): PostExec | undefined => {
  const [, number, list] = listOf(decode(input));
  const blockNumber = numberOf(number);
  const refunds = listOf(list).flatMap((item) => refundOf(item) ?? []);
  if (blockNumber === undefined || refunds.length === 0 || !isRising(refunds)) {
    return undefined;
  }
  const raw = concatBytes([Uint8Array.of(POST_EXEC_TYPE), input]);
  // Other versions, other items and numbers that are not canonical give other bytes.
  const isCanonical = Buffer.from(encodePostExec(blockNumber, refunds)).equals(raw);
  return isCanonical ? { raw, hash: keccak256Hex(raw), input, blockNumber, refunds } : undefined;
};

/** Parses the EIP-2718 bytes. Returns undefined for any other transaction. */
export const parsePostExec = (raw: Uint8Array): PostExec | undefined =>
  raw[0] === POST_EXEC_TYPE ? parsePostExecInput(raw.subarray(1)) : undefined;

/** Returns the gas that the block gives back to each of its transactions, by index. */
export const refundsByIndex = (postExec: PostExec | undefined): ReadonlyMap<number, bigint> =>
  new Map(postExec?.refunds.map(({ index, gasRefund }) => [index, gasRefund]));

/** The place of a post-exec transaction in a sealed block. */
export interface PostExecPlace {
  readonly blockHash: Hash;
  readonly transactionIndex: number;
}

/** Formats the transaction object. Nodes may add members. */
export const formatPostExec = (
  { hash, input, blockNumber }: PostExec,
  { blockHash, transactionIndex }: PostExecPlace,
): Readonly<Record<string, unknown>> => ({
  blockHash,
  blockNumber: formatQuantity(blockNumber),
  from: ZERO_ADDRESS,
  gas: "0x0",
  hash,
  input: formatData(input),
  transactionIndex: formatQuantity(transactionIndex),
  type: formatQuantity(POST_EXEC_TYPE),
  value: "0x0",
});

/** Returns the receipt of the transaction that ends a block, after this gas. */
export const postExecReceipt = (cumulativeGasUsed: bigint): Receipt => ({
  type: POST_EXEC_TYPE,
  status: true,
  cumulativeGasUsed,
  logs: [],
  logsBloom: createBloom(),
});
