import { bloomOfLogs, createBloom, isBloomWithin, orBloom } from "../ethereum/bloom.ts";
import { type Data, formatData, parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt, type LogEntry, type Receipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import {
  type BlockTransactions,
  firstLogIndexOf,
  formatReceiptRow,
  isReceiptAt,
  isVerifiedReceipt,
  type VerifiedReceipts,
} from "./blockRows.ts";
import { type ExpectedLocation, isLocatedAt } from "./expectedLocation.ts";
import { type Finding, failed, failIfMalformed, partial, passed, type UnknownItem } from "./findings.ts";
import {
  bytesOf,
  dataOf,
  fieldsOf,
  isAbsent,
  isDeposit,
  isNumber,
  isSame,
  listOf,
  MalformedField,
  numberOf,
  rpcTypeOf,
} from "./jsonFields.ts";
import type { ReceiptsHeader } from "./knownHeader.ts";

const DEPOSIT = "0x7e";
const KNOWN_TYPES: ReadonlySet<number> = new Set([0, 1, 2, 3, 4, DEPOSIT_TYPE]);

const lower = <T extends string>(value: T): T => value.toLowerCase() as T;

const logOf = (value: unknown): LogEntry => {
  const { address, topics, data, removed } = fieldsOf(value);
  // Only a notification can say that a log is removed.
  if (!isAbsent(removed) && removed !== false) {
    throw new MalformedField("expected a log that is not removed");
  }
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
  type: rpcTypeOf(fields),
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

/** Whether each log states the time of its block, or none. geth 1.16.1 states zero (go-ethereum issue 32334). */
const haveTimestamp = (fields: Fields, { timestamp, isComputed }: ReceiptsHeader): boolean =>
  timestamp === undefined ||
  !isComputed ||
  listOf(fields.logs).every((item) => {
    const { blockTimestamp } = fieldsOf(item);
    return isAbsent(blockTimestamp) || isNumber(blockTimestamp, timestamp) || isNumber(blockTimestamp, 0n);
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
  isVerifiedReceipt(fields, encodeReceipt(parseReceipt(fields)), receipts);

/** Whether a receipt has the number of its block, and only logs that the bloom of the block admits. Throws MalformedField. */
export const isReceiptUnder = (fields: Fields, header: ReceiptsHeader): boolean =>
  isNumber(fields.blockNumber, header.number) &&
  haveTimestamp(fields, header) &&
  isBloomWithin(bloomOfLogs(listOf(fields.logs).map(logOf)), parseData(bytesOf(header.logsBloom, 256)));

/** Whether a receipt has the bloom of its logs, and these have its block and transaction. Throws MalformedField. */
export const hasOwnBloom = (fields: Fields): boolean => {
  const receipt = parseReceipt(fields);
  return isBloomOf(receipt.logsBloom, receipt) && haveExpectedLocation(fields, firstLogIndexOf(fields));
};

const areReceiptsOf = (list: readonly unknown[], transactions: BlockTransactions | undefined): boolean =>
  transactions === undefined || list.every((item, index) => isReceiptAt(fieldsOf(item), transactions, index));

/** What is known beside the receipts of a block. Plain data, sent to a thread. */
export interface ReceiptFacts {
  /** The block's transactions, if they are known. */
  readonly transactions?: BlockTransactions | undefined;
  /** Unknown types whose receipts have the usual encoding: a root has shown it. */
  readonly standardTypes?: readonly number[] | undefined;
  /** The bytes of all receipts, as a node stated them. */
  readonly raws?: readonly Data[] | undefined;
}

/** A list of receipts whose places, blooms and gas are right. Only the root is left to check. */
interface PlacedReceipts {
  readonly encoded: readonly Uint8Array[];
  readonly rows: readonly string[];
  readonly unknown: readonly UnknownItem[];
}

/** Returns undefined if a receipt is not the one of its place. */
const placeReceipts = (
  list: readonly unknown[],
  header: ReceiptsHeader,
  { standardTypes = [] }: ReceiptFacts,
): PlacedReceipts | undefined => {
  const encoded: Uint8Array[] = [];
  const rows: string[] = [];
  const unknown: UnknownItem[] = [];
  const bloom = createBloom();
  let logIndex = 0n;
  let gasUsed = 0n;
  for (const [index, item] of list.entries()) {
    const fields = fieldsOf(item);
    const receipt = parseReceipt(fields);
    const { type } = receipt;
    gasUsed += numberOf(fields.gasUsed);
    const isPlaced =
      isSame(fields.blockHash, header.hash) &&
      isNumber(fields.blockNumber, header.number) &&
      isNumber(fields.transactionIndex, BigInt(index)) &&
      receipt.cumulativeGasUsed === gasUsed &&
      haveTimestamp(fields, header) &&
      haveExpectedLocation(fields, logIndex);
    if (!isPlaced || !isBloomOf(receipt.logsBloom, receipt)) {
      return undefined;
    }
    if (!KNOWN_TYPES.has(type) && !standardTypes.includes(type)) {
      unknown.push({ index, type, hash: bytesOf(fields.transactionHash, 32) });
    }
    const bytes = encodeReceipt(receipt);
    rows.push(formatReceiptRow(fields, bytes, logIndex));
    logIndex += BigInt(receipt.logs.length);
    orBloom(bloom, receipt.logsBloom);
    encoded.push(bytes);
  }
  return isSame(header.logsBloom, formatData(bloom)) ? { encoded, rows, unknown } : undefined;
};

/** Whether the stated bytes are those of the receipts, as far as their types are known. Undefined if the root does not cover them. */
const areReceiptsIn = (
  raws: readonly Data[],
  { encoded, unknown }: PlacedReceipts,
  { receiptsRoot }: ReceiptsHeader,
): boolean | undefined => {
  const all = raws.map(parseData);
  if (all.length !== encoded.length || !isSame(receiptsRoot, orderedTrieRoot(all))) {
    return undefined;
  }
  const types = new Map(unknown.map(({ index, type }) => [index, type]));
  return all.every((raw, index) => {
    const type = types.get(index);
    return type === undefined ? Buffer.from(raw).equals(encoded[index] ?? NOTHING) : raw[0] === type;
  });
};

const NOTHING = new Uint8Array(0);

/**
 * Checks a block's receipts: receiptsRoot, bloom, and the gas, block, transaction and index of each receipt and log. Compares them with
 * the block's transactions if these are known. `partial`: there are receipts of unknown types, which do not have the usual encoding.
 */
const checkReceipts = (list: readonly unknown[], header: ReceiptsHeader, facts: ReceiptFacts = {}): Finding => {
  const hasDeposits = list.some((item) => isFields(item) && item.type === DEPOSIT);
  const check = hasDeposits ? "depositReceipts" : "receipts";
  return failIfMalformed(check, () => {
    const placed = placeReceipts(list, header, facts);
    if (placed === undefined || !areReceiptsOf(list, facts.transactions)) {
      return failed(check);
    }
    const { encoded, rows, unknown } = placed;
    if (isSame(header.receiptsRoot, orderedTrieRoot(encoded))) {
      return { ...passed(check), unknown, ...verifiedReceipts(list, header, rows) };
    }
    const isRight = unknown.length > 0 && facts.raws ? areReceiptsIn(facts.raws, placed, header) : undefined;
    if (isRight === undefined) {
      return unknown.length > 0 ? partial(check, unknown) : failed(check);
    }
    return isRight ? passed(check) : failed(check);
  });
};

/** The checks of a block's receipts. */
export interface ReceiptsChecks {
  readonly kind: "receipts";
  readonly location: ExpectedLocation;
  /** Undefined: only the places are checked. */
  readonly header: ReceiptsHeader | undefined;
  readonly facts?: ReceiptFacts;
}

/** Checks that the receipts are those of the expected block, and whether its header commits to them. */
export const checkBlockReceipts = (
  list: readonly unknown[],
  { location, header, facts }: ReceiptsChecks,
): readonly Finding[] => {
  const areExpected = list.every(
    (item) => isFields(item) && isLocatedAt(location, { hash: item.blockHash, number: item.blockNumber }),
  );
  const findings = [areExpected ? passed("block") : failed("block")];
  if (header === undefined) {
    return findings;
  }
  const finding = checkReceipts(list, header, facts);
  if (finding.outcome !== "passed") {
    return [...findings, finding];
  }
  // An empty list is no evidence for the encoding of receipts.
  if (list.length === 0) {
    return findings;
  }
  // The root covers the receipts beside the deposits too.
  const isMixed = finding.check === "depositReceipts" && list.some((item) => isFields(item) && !isDeposit(item));
  return [...findings, ...(isMixed ? [passed("receipts")] : []), finding];
};
