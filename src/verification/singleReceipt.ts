import { ZERO_ADDRESS } from "../ethereum/hex.ts";
import { POST_EXEC_TYPE } from "../ethereum/postExec.ts";
import { encodeReceipt } from "../ethereum/receipt.ts";
import { asBuffer, asText, type Fields, isFields } from "../json/jsonBytes.ts";
import { elements } from "../json/members.ts";
import { firstLogIndexOf, formatReceiptRow } from "./blockRows.ts";
import { parseReceipt } from "./checkReceipts.ts";
import { ifWellFormed, isAbsent, isDeposit, isSame, numberOf, rpcTypeOf } from "./jsonFields.ts";

/** The scan of a longer list would block the event loop for more than about 1 ms. */
const MAX_SCANNED_BYTES = 128 * 1024;
/** Larger receipts are not parsed on the event loop: only equal bytes are the same. */
const MAX_PARSED_BYTES = 64 * 1024;

const parse = (body: Uint8Array): Fields | undefined => {
  try {
    const value: unknown = JSON.parse(asText(body));
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/**
 * Returns a copy of one receipt in the JSON text of a block's receipts. Returns undefined if it is not there, if the text is long,
 * and for a deposit: some nodes omit fields of it in a list.
 */
export const findReceipt = (receipts: Uint8Array, transaction: string): Uint8Array | undefined => {
  const bytes = asBuffer(receipts);
  const hash = transaction.toLowerCase();
  if (bytes.byteLength > MAX_SCANNED_BYTES || !bytes.includes(hash)) {
    return undefined;
  }
  for (const element of elements(receipts)) {
    const fields = asBuffer(element).includes(hash) ? parse(element) : undefined;
    if (fields !== undefined && isSame(fields.transactionHash, hash)) {
      return isDeposit(fields) ? undefined : new Uint8Array(element);
    }
  }
  return undefined;
};

const PLACE = ["blockHash", "transactionHash", "from", "to", "contractAddress"] as const;
const NUMBERS = ["blockNumber", "transactionIndex"] as const;

/** Formats all that nodes of different software state alike. Throws MalformedField. */
const summaryOf = (fields: Fields): string => {
  // A post-exec transaction has no recipient. Some nodes state zero.
  const hasNone = rpcTypeOf(fields) === POST_EXEC_TYPE && fields.to === ZERO_ADDRESS;
  const place = PLACE.map((name) => (hasNone && name === "to" ? "" : String(fields[name] ?? "").toLowerCase()));
  const numbers = NUMBERS.map((name) => numberOf(fields[name]).toString());
  // Before Byzantium, some nodes return a status instead of `root`.
  const row = isAbsent(fields.status)
    ? ""
    : formatReceiptRow(fields, encodeReceipt(parseReceipt(fields)), firstLogIndexOf(fields));
  return [...place, ...numbers, row].join(" ");
};

/** Nodes that do not know refunds state none. */
const areRefundsSame = ({ opGasRefund: one }: Fields, { opGasRefund: other }: Fields): boolean =>
  isAbsent(one) || isAbsent(other) || numberOf(one) === numberOf(other);

/** Whether two receipts, given as JSON text, are the same in all that the protocol defines. */
export const isSameReceipt = (one: Uint8Array, other: Uint8Array): boolean => {
  if (Buffer.compare(one, other) === 0) {
    return true;
  }
  if (Math.max(one.byteLength, other.byteLength) > MAX_PARSED_BYTES) {
    return false;
  }
  const [first, second] = [parse(one), parse(other)];
  return ifWellFormed(() => {
    const areKnown = first !== undefined && second !== undefined;
    return areKnown && summaryOf(first) === summaryOf(second) && areRefundsSame(first, second);
  }, false);
};
