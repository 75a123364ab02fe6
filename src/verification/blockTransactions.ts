import { createdAddress } from "../ethereum/receipt.ts";
import type { Fields } from "../json/fields.ts";
import { bytesOf, digitsOf, isAbsent, isDeposit, isNumber, isSame, listOf, numberOf } from "./jsonFields.ts";

/** The transactions of a block whose transactionsRoot is verified. Plain data, sent to a thread. */
export interface BlockTransactions {
  readonly hash: string;
  readonly number: bigint;
  /** One row of fixed width for each transaction. A text is copied between threads faster than objects. */
  readonly rows: string;
}

const HASH_WIDTH = 64;
const ADDRESS_WIDTH = 40;
const NONCE_WIDTH = 16;
const NONCE_AT = HASH_WIDTH + ADDRESS_WIDTH;
const ROW_WIDTH = NONCE_AT + NONCE_WIDTH;

/** The hash, then the recipient, then the nonce. A column without a value has spaces. */
const formatRow = (fields: Fields): string => {
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
    .map((item) => formatRow(item as Fields))
    .join(""),
});

/** Whether the contract in a receipt is the one that its sender created with that nonce. A failed creation may have none. */
const isCreatedContract = ({ contractAddress, from, status }: Fields, nonce: string): boolean => {
  if (isAbsent(contractAddress)) {
    return isNumber(status, 0n);
  }
  return nonce === "" || isSame(contractAddress, createdAddress(bytesOf(from, 20), BigInt(`0x${nonce}`)));
};

const isRecipientOf = (receipt: Fields, recipient: string, nonce: string): boolean =>
  recipient === ""
    ? isAbsent(receipt.to) && isCreatedContract(receipt, nonce)
    : isSame(receipt.to, `0x${recipient}`) && isAbsent(receipt.contractAddress);

const rowAt = (rows: string, index: number): string => rows.slice(index * ROW_WIDTH, (index + 1) * ROW_WIDTH);

const isHashAt = (hash: unknown, row: string): boolean => isSame(hash, `0x${row.slice(0, HASH_WIDTH)}`);

/** Whether a receipt is that of the transaction at this index: its hash, its recipient, and the created contract. */
export const isReceiptAt = (receipt: Fields, { rows }: BlockTransactions, index: number): boolean => {
  const row = rowAt(rows, index);
  return (
    isHashAt(receipt.transactionHash, row) &&
    isRecipientOf(receipt, row.slice(HASH_WIDTH, NONCE_AT).trim(), row.slice(NONCE_AT).trim())
  );
};

/** Whether a transaction or receipt has the number of its block, and its index in it. */
export const isLocatedIn = (fields: Fields, hash: unknown, { number, rows }: BlockTransactions): boolean =>
  isNumber(fields.blockNumber, number) && isHashAt(hash, rowAt(rows, Number(numberOf(fields.transactionIndex))));
