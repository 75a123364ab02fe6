import { bloomOfLogs, createBloom, isBloomWithin, orBloom } from "../ethereum/bloom.ts";
import { formatData, parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt, type LogEntry, type Receipt } from "../ethereum/receipt.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import {
  type BlockTransactions,
  formatReceiptRow,
  isReceiptAt,
  isVerifiedReceipt,
  type VerifiedReceipts,
} from "./blockRows.ts";
import { type Finding, failed, failIfMalformed, passed, uncomputable } from "./findings.ts";
import { bytesOf, dataOf, fieldsOf, isAbsent, isDeposit, isNumber, isSame, listOf, numberOf } from "./jsonFields.ts";

/** The fields of a block's header that its receipts must match. Plain data, sent to a thread. */
export interface ReceiptsHeader {
  readonly hash: string;
  readonly number: bigint;
  readonly receiptsRoot: string;
  readonly logsBloom: string;
  /** Whether `cumulativeGasUsed` is the sum of `gasUsed`. Since EIP-7778 it is not. */
  readonly sumsGasUsed: boolean;
  /** The hash was computed from the fields. A header with unknown fields may be accepted without that, and proves nothing. */
  readonly isComputed: boolean;
}

const DEPOSIT = "0x7e";
const KNOWN_TYPES: ReadonlySet<bigint> = new Set([0n, 1n, 2n, 3n, 4n, 0x7en]);

const hasKnownType = ({ type }: Fields): boolean => isAbsent(type) || KNOWN_TYPES.has(numberOf(type));

const lower = <T extends string>(value: T): T => value.toLowerCase() as T;

const logOf = (value: unknown): LogEntry => {
  const { address, topics, data } = fieldsOf(value);
  return {
    address: lower(bytesOf(address, 20)),
    topics: listOf(topics).map((topic) => lower(bytesOf(topic, 32))),
    data: dataOf(data),
  };
};

const statusOf = ({ status, root }: Fields): Receipt["status"] =>
  isAbsent(status) ? bytesOf(root, 32) : numberOf(status) === 1n;

/** Parses the fields of a receipt that its encoding needs. Throws MalformedField. */
export const parseReceipt = (fields: Fields): Receipt => ({
  type: isAbsent(fields.type) ? 0 : Number(numberOf(fields.type)),
  status: statusOf(fields),
  cumulativeGasUsed: numberOf(fields.cumulativeGasUsed),
  logs: listOf(fields.logs).map(logOf),
  logsBloom: parseData(bytesOf(fields.logsBloom, 256)),
  // Before Canyon, the receipts root does not cover the nonce in the receipt of a deposit.
  ...(isDeposit(fields) &&
    !isAbsent(fields.depositReceiptVersion) && {
      depositNonce: numberOf(fields.depositNonce),
      depositReceiptVersion: numberOf(fields.depositReceiptVersion),
    }),
});

/** Whether the logs of a receipt have its block and transaction, and consecutive indexes from `firstLogIndex`. */
const haveExpectedLocation = (fields: Fields, firstLogIndex: bigint): boolean =>
  listOf(fields.logs).every((item, at) => {
    const log = fieldsOf(item);
    return (
      isSame(log.blockHash, dataOf(fields.blockHash)) &&
      isNumber(log.blockNumber, numberOf(fields.blockNumber)) &&
      isSame(log.transactionHash, dataOf(fields.transactionHash)) &&
      isNumber(log.transactionIndex, numberOf(fields.transactionIndex)) &&
      isNumber(log.logIndex, firstLogIndex + BigInt(at))
    );
  });

const isBloomOf = (bloom: Uint8Array, { logs }: Receipt): boolean => Buffer.from(bloomOfLogs(logs)).equals(bloom);

/** Returns the rows of receipts that may be compared with single ones. */
const verifiedReceipts = (
  list: readonly unknown[],
  { hash, number, isComputed }: ReceiptsHeader,
  rows: readonly string[],
): Pick<Finding, "receipts"> => {
  // Before Byzantium, some nodes return a status that no root covers, instead of `root`.
  const isComparable = isComputed && list.every((item) => isFields(item) && !isAbsent(item.status));
  return isComparable ? { receipts: { hash: hash.toLowerCase(), number, rows: rows.join("") } } : {};
};

/** Whether a receipt has all that the receipts root covers of the one at its index. Throws MalformedField. */
export const isReceiptOf = (fields: Fields, receipts: VerifiedReceipts): boolean =>
  hasKnownType(fields) && isVerifiedReceipt(fields, encodeReceipt(parseReceipt(fields)), receipts);

/** Whether a receipt has the number of its block, and only logs that the bloom of the block admits. Throws MalformedField. */
export const isReceiptUnder = (fields: Fields, { number, logsBloom }: ReceiptsHeader): boolean =>
  isNumber(fields.blockNumber, number) &&
  isBloomWithin(bloomOfLogs(listOf(fields.logs).map(logOf)), parseData(bytesOf(logsBloom, 256)));

/** Checks one receipt: its bloom, and the block, transaction and index of its logs. */
export const checkReceipt = (fields: Fields): Finding =>
  failIfMalformed("receipts", () => {
    const receipt = parseReceipt(fields);
    const [first] = listOf(fields.logs);
    const firstLogIndex = first === undefined ? 0n : numberOf(fieldsOf(first).logIndex);
    const isExpected = isBloomOf(receipt.logsBloom, receipt) && haveExpectedLocation(fields, firstLogIndex);
    return isExpected ? passed("receipts") : failed("receipts");
  });

const areReceiptsOf = (list: readonly unknown[], transactions: BlockTransactions | undefined): boolean =>
  transactions === undefined || list.every((item, index) => isReceiptAt(fieldsOf(item), transactions, index));

/**
 * Checks a block's receipts: receiptsRoot, bloom, and the block, transaction and index of each receipt and log.
 * Compares them with the block's transactions if these are known.
 */
export const checkReceipts = (
  list: readonly unknown[],
  header: ReceiptsHeader,
  transactions?: BlockTransactions,
): Finding => {
  const hasDeposits = list.some((item) => isFields(item) && item.type === DEPOSIT);
  const check = hasDeposits ? "depositReceipts" : "receipts";
  return failIfMalformed(check, () => {
    const encoded: Uint8Array[] = [];
    const rows: string[] = [];
    const bloom = createBloom();
    let logIndex = 0n;
    let gasUsed = 0n;
    for (const [index, item] of list.entries()) {
      const fields = fieldsOf(item);
      if (!hasKnownType(fields)) {
        return uncomputable(check);
      }
      const receipt = parseReceipt(fields);
      gasUsed += numberOf(fields.gasUsed);
      const hasLocation =
        isSame(fields.blockHash, header.hash) &&
        isNumber(fields.blockNumber, header.number) &&
        isNumber(fields.transactionIndex, BigInt(index)) &&
        (!header.sumsGasUsed || receipt.cumulativeGasUsed === gasUsed) &&
        haveExpectedLocation(fields, logIndex);
      if (!hasLocation || !isBloomOf(receipt.logsBloom, receipt)) {
        return failed(check);
      }
      const bytes = encodeReceipt(receipt);
      rows.push(formatReceiptRow(fields, bytes, { sumsGasUsed: header.sumsGasUsed, firstLogIndex: logIndex }));
      logIndex += BigInt(receipt.logs.length);
      orBloom(bloom, receipt.logsBloom);
      encoded.push(bytes);
    }
    const isExpected =
      areReceiptsOf(list, transactions) &&
      isSame(header.receiptsRoot, orderedTrieRoot(encoded)) &&
      isSame(header.logsBloom, formatData(bloom));
    return isExpected ? { ...passed(check), ...verifiedReceipts(list, header, rows) } : failed(check);
  });
};
