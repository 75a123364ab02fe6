import type { BlockId } from "../core/heads.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { isHash, isQuantity } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import { isNumber, isSame, quantityOf } from "./jsonFields.ts";

/** The block or index that a call names. Its response must have the same. An absent member is not checked. */
export interface ExpectedLocation {
  readonly hash?: string;
  readonly number?: bigint;
  /** Index of a transaction in its block. */
  readonly index?: bigint;
}

/** The hash and the number of a block as a response states them. */
interface StatedBlock {
  readonly hash: unknown;
  readonly number: unknown;
}

const isBlockTag = (value: unknown): boolean => typeof value === "string" && !value.startsWith("0x");

/** The hash in a block parameter `{blockHash}` (EIP-1898). */
export const blockHashOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "blockHash" in value ? value.blockHash : undefined;

/**
 * Returns the block that the response must be of: the call's first parameter is a number, a hash, or `{blockHash}`. Undefined for a
 * tag: a pending block has no hash and no roots yet.
 * If the request has its block's number, `{blockHash}` is not compared: a node without EIP-1898 gets the number instead.
 */
export const expectedLocation = ({ params: [first] }: Call, { block }: RpcRequest): ExpectedLocation | undefined => {
  if (isBlockTag(first)) {
    return undefined;
  }
  const hash = block === undefined ? (blockHashOf(first) ?? first) : first;
  const number = block?.number ?? (isQuantity(first) && !isHash(first) ? BigInt(first) : undefined);
  return { ...(isHash(hash) && { hash }), ...(number !== undefined && { number }) };
};

/** Whether a response is of the block that its call names. */
export const isLocatedAt = ({ hash, number }: ExpectedLocation, own: StatedBlock): boolean =>
  (hash === undefined || isSame(own.hash, hash)) && (number === undefined || isNumber(own.number, number));

/** Whether the parsed block is the scanned one. Of two equal keys, a scan finds the first and a parser the last. */
export const isScannedBlock = ({ hash, number }: StatedBlock, scanned: BlockId | null | undefined): boolean => {
  if (scanned === undefined) {
    return true;
  }
  return scanned === null ? !isHash(hash) : isSame(hash, scanned.hash) && quantityOf(number) === scanned.number;
};
