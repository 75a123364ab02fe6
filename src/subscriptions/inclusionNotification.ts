import type { BlockId } from "../core/heads.ts";
import type { Body } from "../core/view.ts";
import { formatQuantity, isHash, isQuantity } from "../ethereum/hex.ts";
import { type Fields, formatJson, isFields } from "../json/jsonBytes.ts";

/** `preconfirmed` is not in EIP-8072: the transaction is in the pending block of the feed. */
export type InclusionStatus = "preconfirmed" | "included" | "reorged" | "finalized";

/** Where a block has the transaction. */
export interface Inclusion extends BlockId {
  readonly transactionIndex: bigint;
}

/** Returns the place of a transaction by its receipt. Undefined if this is no receipt of a block. */
export const placeOf = (receipt: unknown): Inclusion | undefined => {
  if (!isFields(receipt)) {
    return undefined;
  }
  const { blockHash: hash, blockNumber, transactionIndex } = receipt;
  return isHash(hash) && isQuantity(blockNumber) && isQuantity(transactionIndex)
    ? { hash, number: BigInt(blockNumber), transactionIndex: BigInt(transactionIndex) }
    : undefined;
};

/** Formats the result of a notification. A transaction that is taken back has no receipt. */
export const formatInclusion = (
  status: InclusionStatus,
  { hash, number, transactionIndex }: Inclusion,
  receipt: Fields | null,
): Body =>
  formatJson({
    status,
    blockHash: hash,
    blockNumber: formatQuantity(number),
    transactionIndex: formatQuantity(transactionIndex),
    receipt,
  });
