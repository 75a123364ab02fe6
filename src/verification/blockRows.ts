import { createHash } from "node:crypto";
import { isQuantity } from "../ethereum/hex.ts";
import type { GasRefund } from "../ethereum/postExec.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import { asText, type Fields } from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";
import { parseRpcPostExec } from "./encodeRpcTransaction.ts";
import {
  bytesOf,
  digitsOf,
  fieldsOf,
  isAbsent,
  isDeposit,
  isNumber,
  isSame,
  listOf,
  numberOf,
  rpcTypeOf,
} from "./jsonFields.ts";

/** The transactions of a block whose transactionsRoot is verified. Plain data, sent to a thread. */
export interface BlockTransactions {
  readonly hash: string;
  readonly number: bigint;
  /** One row of fixed width for each transaction. A text is copied between threads faster than objects. */
  readonly rows: string;
  /** The gas that the block gives back. */
  readonly refunds: readonly GasRefund[];
}

const HASH_WIDTH = 64;
const ADDRESS_WIDTH = 40;
const NONCE_WIDTH = 16;
const NONCE_AT = HASH_WIDTH + ADDRESS_WIDTH;
const TRANSACTION_WIDTH = NONCE_AT + NONCE_WIDTH;

/** Stands for a recipient that is not compared: nodes state none, `null` or zero, or forebay does not know the type. */
const ANY = "?";
const MAX_SIGNED_TYPE = 4;

/** The hash, then the recipient, then the nonce. A column without a value has spaces. */
const formatTransactionRow = (fields: Fields): string => {
  if (rpcTypeOf(fields) > MAX_SIGNED_TYPE && !isDeposit(fields)) {
    return (digitsOf(fields.hash, 32) + ANY.padStart(ADDRESS_WIDTH)).padEnd(TRANSACTION_WIDTH);
  }
  const recipient = isAbsent(fields.to) ? "" : digitsOf(fields.to, 20);
  // The hash of a deposit does not cover a nonce.
  const nonce = isDeposit(fields) ? "" : numberOf(fields.nonce).toString(16);
  return digitsOf(fields.hash, 32) + recipient.padStart(ADDRESS_WIDTH) + nonce.padStart(NONCE_WIDTH);
};

/** Formats a block's verified full transactions. Throws MalformedField. */
export const formatTransactions = (block: Fields): BlockTransactions => ({
  hash: bytesOf(block.hash, 32).toLowerCase(),
  number: numberOf(block.number),
  rows: listOf(block.transactions)
    .map((item) => formatTransactionRow(item as Fields))
    .join(""),
  refunds: parseRpcPostExec(fieldsOf(listOf(block.transactions).at(-1) ?? {}))?.refunds ?? [],
});

/** Whether the contract in a receipt is the one that its sender created with that nonce. A failed creation may have none. */
const isCreatedContract = ({ contractAddress, from, status }: Fields, nonce: string): boolean => {
  if (isAbsent(contractAddress)) {
    return isNumber(status, 0n);
  }
  return nonce === "" || isSame(contractAddress, createdAddress(bytesOf(from, 20), BigInt(`0x${nonce}`)));
};

const isRecipientOf = (receipt: Fields, recipient: string, nonce: string): boolean => {
  if (recipient === ANY) {
    return true;
  }
  return recipient === ""
    ? isAbsent(receipt.to) && isCreatedContract(receipt, nonce)
    : isSame(receipt.to, `0x${recipient}`) && isAbsent(receipt.contractAddress);
};

/** Whether a receipt states the gas that its block gives back to the transaction, or nothing. */
const isRefundOf = ({ opGasRefund }: Fields, refunds: readonly GasRefund[], at: number): boolean =>
  isAbsent(opGasRefund) || isNumber(opGasRefund, refunds.find(({ index }) => index === at)?.gasRefund ?? 0n);

const rowAt = (rows: string, index: number, width: number): string => rows.slice(index * width, (index + 1) * width);

const isHashAt = (hash: unknown, row: string): boolean => isSame(hash, `0x${row.slice(0, HASH_WIDTH)}`);

/** Whether a receipt is that of the transaction at this index: its hash, its recipient, the created contract, and the refund. */
export const isReceiptAt = (receipt: Fields, { rows, refunds }: BlockTransactions, index: number): boolean => {
  const row = rowAt(rows, index, TRANSACTION_WIDTH);
  return (
    isHashAt(receipt.transactionHash, row) &&
    isRefundOf(receipt, refunds, index) &&
    isRecipientOf(receipt, row.slice(HASH_WIDTH, NONCE_AT).trim(), row.slice(NONCE_AT).trim())
  );
};

/** Whether these are the hashes of the block's transactions, in order. */
export const hasHashesOf = (hashes: readonly unknown[], { rows }: BlockTransactions): boolean =>
  hashes.length * TRANSACTION_WIDTH === rows.length &&
  hashes.every((hash, index) => isHashAt(hash, rowAt(rows, index, TRANSACTION_WIDTH)));

/** Returns the number of a block's transactions. */
export const countTransactions = ({ rows }: BlockTransactions): number => rows.length / TRANSACTION_WIDTH;

/** Whether a transaction or receipt has the number of its block, and its index in it. */
export const isLocatedIn = (fields: Fields, hash: unknown, { number, rows }: BlockTransactions): boolean =>
  isNumber(fields.blockNumber, number) &&
  isHashAt(hash, rowAt(rows, Number(numberOf(fields.transactionIndex)), TRANSACTION_WIDTH));

/** The receipts of a block whose receiptsRoot is verified. Plain data, sent to a thread. */
export interface VerifiedReceipts {
  readonly hash: string;
  readonly number: bigint;
  /** One row of fixed width for each receipt. */
  readonly rows: string;
}

const DIGEST_WIDTH = 64;
const RECEIPT_WIDTH = HASH_WIDTH + DIGEST_WIDTH;

/** The index of a receipt's first log, as its node states it. Throws MalformedField. */
export const firstLogIndexOf = ({ logs }: Fields): bigint => {
  const [first] = listOf(logs);
  return first === undefined ? 0n : numberOf(fieldsOf(first).logIndex);
};

/**
 * Formats one receipt: its transaction, and a digest of all that the receipts root shows. That is its encoding, its gas, and the index
 * of its first log. The encoding of a deposit is left out: some nodes omit fields of it in one of the two methods.
 */
export const formatReceiptRow = (fields: Fields, encoded: Uint8Array, firstLogIndex: bigint): string => {
  const logIndex = listOf(fields.logs).length === 0 ? "" : firstLogIndex;
  const digest = createHash("sha256").update(`${numberOf(fields.gasUsed)} ${logIndex} `);
  return digitsOf(fields.transactionHash, 32) + (isDeposit(fields) ? digest : digest.update(encoded)).digest("hex");
};

/** Whether a receipt, whose encoding is given, is the verified one at its index. Throws MalformedField. */
export const isVerifiedReceipt = (fields: Fields, encoded: Uint8Array, { number, rows }: VerifiedReceipts): boolean => {
  const row = rowAt(rows, Number(numberOf(fields.transactionIndex)), RECEIPT_WIDTH);
  const own = formatReceiptRow(fields, encoded, firstLogIndexOf(fields));
  // The root does not cover the transaction.
  return isNumber(fields.blockNumber, number) && row.slice(HASH_WIDTH) === own.slice(HASH_WIDTH);
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
  return index !== undefined && rowAt(rows, index, RECEIPT_WIDTH).startsWith(transaction.slice(2).toLowerCase());
};
