import { hash } from "node:crypto";
import { isQuantity } from "../ethereum/hex.ts";
import type { Fields } from "../json/fields.ts";
import { asText } from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";
import { digitsOf, fieldsOf, isDeposit, isNumber, listOf, numberOf } from "./jsonFields.ts";

/** The receipts of a block whose receiptsRoot is verified. Plain data, sent to a thread. */
export interface VerifiedReceipts {
  readonly hash: string;
  readonly number: bigint;
  /** One row of fixed width for each receipt. */
  readonly rows: string;
}

const HASH_WIDTH = 64;
const DIGEST_WIDTH = 64;
const DIGEST_AT = HASH_WIDTH;
const GAS_WIDTH = 16;
const GAS_AT = DIGEST_AT + DIGEST_WIDTH;
const LOG_INDEX_WIDTH = 8;
const LOG_INDEX_AT = GAS_AT + GAS_WIDTH;
const ROW_WIDTH = LOG_INDEX_AT + LOG_INDEX_WIDTH;

const digestOf = (encoded: Uint8Array): string => hash("sha256", encoded, "hex");

/**
 * Formats one receipt: its transaction, the digest of its encoding, its gas, and the index of its first log.
 * The receipts root covers all of them but the transaction. Gas that `cumulativeGasUsed` does not verify is left out. So is
 * the digest of a deposit: some nodes omit fields of it in one of the two methods.
 */
export const formatReceiptRow = (
  fields: Fields,
  encoded: Uint8Array,
  { sumsGasUsed, firstLogIndex }: { readonly sumsGasUsed: boolean; readonly firstLogIndex: bigint },
): string =>
  digitsOf(fields.transactionHash, 32) +
  (isDeposit(fields) ? "" : digestOf(encoded)).padStart(DIGEST_WIDTH) +
  (sumsGasUsed ? numberOf(fields.gasUsed).toString(16) : "").padStart(GAS_WIDTH) +
  firstLogIndex.toString(16).padStart(LOG_INDEX_WIDTH);

const rowAt = (rows: string, index: number): string => rows.slice(index * ROW_WIDTH, (index + 1) * ROW_WIDTH);

const columnAt = (row: string, at: number, width: number): string => row.slice(at, at + width).trim();

/** Whether a receipt, whose encoding is given, is the verified one at its index. Throws MalformedField. */
export const isVerifiedReceipt = (fields: Fields, encoded: Uint8Array, { number, rows }: VerifiedReceipts): boolean => {
  const row = rowAt(rows, Number(numberOf(fields.transactionIndex)));
  const digest = columnAt(row, DIGEST_AT, DIGEST_WIDTH);
  const gasUsed = columnAt(row, GAS_AT, GAS_WIDTH);
  const [firstLog] = listOf(fields.logs);
  return (
    row.length === ROW_WIDTH &&
    (digest === "" || digest === digestOf(encoded)) &&
    isNumber(fields.blockNumber, number) &&
    (gasUsed === "" || isNumber(fields.gasUsed, BigInt(`0x${gasUsed}`))) &&
    (firstLog === undefined ||
      isNumber(fieldsOf(firstLog).logIndex, BigInt(`0x${columnAt(row, LOG_INDEX_AT, LOG_INDEX_WIDTH)}`)))
  );
};

const readIndex = (receipt: Uint8Array): number | undefined => {
  for (const { key, value } of members(receipt)) {
    if (key === "transactionIndex") {
      const text = asText(value).slice(1, -1);
      return isQuantity(text) ? Number(text) : undefined;
    }
  }
  return undefined;
};

/** Whether the list has this transaction at the index that the receipt, given as JSON text, names. */
export const isListedAtIndex = (receipt: Uint8Array, transaction: string, { rows }: VerifiedReceipts): boolean => {
  const index = readIndex(receipt);
  return index !== undefined && rowAt(rows, index).startsWith(transaction.slice(2).toLowerCase());
};
