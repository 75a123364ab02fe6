import { isUtf8 } from "node:buffer";
import type { BlockId } from "../core/heads.ts";
import { areItemsWhole } from "../core/wholeResults.ts";
import { isHash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { asBuffer, type Fields, isFields, skipSpace } from "../json/jsonBytes.ts";
import { skipValue, TOO_DEEP } from "../json/skipValue.ts";
import type { ProofRequest } from "./accountProof.ts";
import { hashBlockAccessList, parseBlockAccessList } from "./blockAccessList.ts";
import type { VerifiedReceipts } from "./blockRows.ts";
import { type BlockTransactions, formatTransactions, hasHashesOf, isLocatedIn, isReceiptAt } from "./blockRows.ts";
import { boundBlock } from "./boundBlock.ts";
import { checkHeader } from "./checkHeader.ts";
import { checkProof } from "./checkProof.ts";
import { checkReceipt, checkReceipts, isReceiptOf, isReceiptUnder, type ReceiptFacts } from "./checkReceipts.ts";
import {
  checkRawTransaction,
  checkTransactionHash,
  checkTransactions,
  matchesEmptyRoot,
  type TransactionFacts,
} from "./checkTransactions.ts";
import { type Finding, failed, failIfMalformed, passed } from "./findings.ts";
import { dataOf, isDeposit, isNumber, isSame, listOf, numberOf, quantityOf } from "./jsonFields.ts";
import { knownHeaderOf, type ReceiptsHeader } from "./knownHeader.ts";
import { areLogsInBlooms, areLogsOfReceipts } from "./matchLogs.ts";

/** The block or index that a call names. Its response must have the same. An absent member is not checked. */
export interface ExpectedLocation {
  readonly hash?: string;
  readonly number?: bigint;
  /** Index of a transaction in its block. */
  readonly index?: bigint;
}

/**
 * The checks of one response, as plain data for a thread. With `checksHashes`, hashes and roots are computed and compared.
 * `scannedBlock`: the block that a scan of the response found, or null. It selects what is known of the block, and the branch.
 */
export type ResponseChecks =
  /** `hasItems`: whether the result is a list, of which single items may be errors. */
  | { readonly kind: "json"; readonly hasItems?: boolean }
  | {
      readonly kind: "block";
      readonly location: ExpectedLocation;
      readonly checksHashes: boolean;
      /** The form of the transactions that the block must have. A header has none. Full ones that pass are in the finding. */
      readonly transactions?: "full" | "hashes";
      /** The block's transactions, if they are known. */
      readonly block?: BlockTransactions | undefined;
      readonly facts?: TransactionFacts;
      readonly scannedBlock?: BlockId | null;
    }
  /** `hash`: the transaction's, if the call contains it. `block`: its block's transactions, if they are known. */
  | {
      readonly kind: "transaction";
      readonly hash?: string;
      readonly location: ExpectedLocation;
      readonly checksHashes: boolean;
      readonly block?: BlockTransactions | undefined;
      readonly facts?: TransactionFacts;
      readonly scannedBlock?: BlockId | null;
    }
  /** `block`, `receipts` and `header`: those of its block, if they are known. */
  | {
      readonly kind: "receipt";
      readonly hash: string;
      readonly checksHashes: boolean;
      readonly block?: BlockTransactions | undefined;
      readonly receipts?: VerifiedReceipts | undefined;
      readonly header?: ReceiptsHeader | undefined;
      readonly scannedBlock?: BlockId | null;
    }
  | { readonly kind: "raw"; readonly hash: string }
  | {
      readonly kind: "receipts";
      readonly location: ExpectedLocation;
      readonly header: ReceiptsHeader | undefined;
      readonly facts?: ReceiptFacts;
    }
  | {
      readonly kind: "logs";
      readonly filter: LogFilter;
      readonly blooms: ReadonlyMap<string, Uint8Array>;
      /** JSON text of the block's verified receipts, if all logs are of one block. */
      readonly receipts: Uint8Array | undefined;
    }
  | { readonly kind: "proof"; readonly request: ProofRequest }
  /** `hash`: that of the header. A list is a block access list as JSON, or its RLP in hex. */
  | { readonly kind: "accessList"; readonly hash: string };

const latin1 = (bytes: Uint8Array): string => asBuffer(bytes).toString("latin1");

/** Whether the text is exactly one JSON value (RFC 8259). */
export const isJson = (bytes: Uint8Array): boolean => {
  if (!isUtf8(bytes)) {
    return false;
  }
  const end = skipValue(bytes, skipSpace(bytes, 0), 1);
  if (end === TOO_DEEP) {
    return parse(bytes) !== undefined;
  }
  return end > 0 && skipSpace(bytes, end) === bytes.length;
};

/** Returns undefined if the text is not JSON. Decodes as Latin-1, because all checked members are ASCII. */
const parse = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) {
    return undefined;
  }
  try {
    return JSON.parse(latin1(bytes));
  } catch {
    return undefined;
  }
};

const isLocatedAt = (
  { hash, number }: ExpectedLocation,
  own: { readonly hash: unknown; readonly number: unknown },
): boolean => (hash === undefined || isSame(own.hash, hash)) && (number === undefined || isNumber(own.number, number));

/** Whether the parsed block is the scanned one. Of two equal keys, a scan finds the first and a parser the last. */
const isScannedBlock = (
  { hash, number }: { readonly hash: unknown; readonly number: unknown },
  scanned: BlockId | null | undefined,
): boolean => {
  if (scanned === undefined) {
    return true;
  }
  return scanned === null ? !isHash(hash) : isSame(hash, scanned.hash) && quantityOf(number) === scanned.number;
};

const isListOf = (transactions: unknown, form: "full" | "hashes"): boolean =>
  Array.isArray(transactions) && transactions.every((item) => (form === "full" ? isFields(item) : isHash(item)));

const checkBlock = (block: Fields, checks: ResponseChecks & { kind: "block" }): Finding[] => {
  const { location, checksHashes, transactions: form, block: known } = checks;
  if (form !== undefined && !isListOf(block.transactions, form)) {
    return [failed("block")];
  }
  if (form === "hashes" && known !== undefined && !hasHashesOf(listOf(block.transactions), known)) {
    return [failed("block")];
  }
  const own = { hash: block.hash, number: block.number };
  const isExpected = isLocatedAt(location, own) && isScannedBlock(own, checks.scannedBlock);
  const findings = [isExpected ? passed("block") : failed("block")];
  if (!checksHashes) {
    return findings;
  }
  const header = checkHeader(block);
  if (header.outcome === "passed") {
    const boundTo = boundBlock(block, checks.block);
    findings.push({ ...header, known: knownHeaderOf(block, true), ...(boundTo !== undefined && { boundTo }) });
  } else {
    findings.push(header);
  }
  findings.push(...(Array.isArray(block.transactions) ? findingsOfTransactions(block, checks) : []));
  return findings;
};

const findingsOfTransactions = (block: Fields, checks: ResponseChecks & { kind: "block" }): readonly Finding[] => {
  const transactions = listOf(block.transactions);
  if (!matchesEmptyRoot(block)) {
    return [failed("header")];
  }
  if (!isFields(transactions[0])) {
    return [];
  }
  const finding = checkTransactions(block, checks.facts);
  switch (finding.outcome) {
    case "passed":
      return [checks.transactions === undefined ? finding : { ...finding, transactions: formatTransactions(block) }];
    case "partial":
      // The hashes of the others were computed, so that forebay knows the chain's encoding.
      return (finding.unknown?.length ?? 0) < transactions.length ? [passed("transactions"), finding] : [finding];
    default:
      return [finding];
  }
};

const checkTransaction = (fields: Fields, checks: ResponseChecks & { kind: "transaction" }): Finding[] => {
  const { hash, location, checksHashes, block, scannedBlock } = checks;
  const own = { hash: fields.blockHash, number: fields.blockNumber };
  const finding = failIfMalformed("transaction", () => {
    const isExpected =
      (hash === undefined || isSame(fields.hash, hash)) &&
      isScannedBlock(own, scannedBlock) &&
      isLocatedAt(location, own) &&
      (location.index === undefined || isNumber(fields.transactionIndex, location.index)) &&
      (block === undefined || isLocatedIn(fields, fields.hash, block));
    return isExpected ? passed("transaction") : failed("transaction");
  });
  return [finding, ...(checksHashes ? [checkTransactionHash(fields, checks.facts)] : [])];
};

const isReceiptIn = (receipt: Fields, block: BlockTransactions): boolean =>
  isLocatedIn(receipt, receipt.transactionHash, block) &&
  isReceiptAt(receipt, block, Number(numberOf(receipt.transactionIndex)));

const checkReceiptOf = (
  receipt: Fields,
  { hash, checksHashes, block, receipts, header, scannedBlock }: ResponseChecks & { kind: "receipt" },
): Finding[] => {
  const finding = failIfMalformed("transaction", () => {
    const isExpected =
      isSame(receipt.transactionHash, hash) &&
      isScannedBlock({ hash: receipt.blockHash, number: receipt.blockNumber }, scannedBlock) &&
      (block === undefined || isReceiptIn(receipt, block)) &&
      (receipts === undefined || isReceiptOf(receipt, receipts)) &&
      (header === undefined || isReceiptUnder(receipt, header));
    return isExpected ? passed("transaction") : failed("transaction");
  });
  if (finding.outcome !== "passed") {
    return [finding];
  }
  // A matching bloom is no evidence for the encoding of receipts, so it is no finding.
  const isWrong = checksHashes && checkReceipt(receipt).outcome !== "passed";
  return [finding, ...(isWrong ? [failed("receipts")] : [])];
};

const checkBlockReceipts = (
  list: readonly unknown[],
  { location, header, facts }: ResponseChecks & { kind: "receipts" },
): Finding[] => {
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

const checkLogs = (
  list: readonly unknown[],
  { filter, blooms, receipts }: ResponseChecks & { kind: "logs" },
): Finding[] => {
  const all = receipts === undefined ? undefined : parse(receipts);
  const areRight =
    list.every(isFields) &&
    areLogsInBlooms(list, blooms) &&
    (!Array.isArray(all) || areLogsOfReceipts(list, all, filter));
  return [areRight ? passed("logs") : failed("logs")];
};

const checkAccessList = (value: unknown, expected: string): Finding => {
  const hash =
    typeof value === "string"
      ? keccak256Hex(parseData(dataOf(value)))
      : hashBlockAccessList(parseBlockAccessList(value));
  return isSame(hash, expected) ? passed("accessList") : failed("accessList");
};

const checkObject = (
  fields: Fields,
  checks: ResponseChecks & { kind: "block" | "transaction" | "receipt" },
): Finding[] => {
  switch (checks.kind) {
    case "block":
      return checkBlock(fields, checks);
    case "transaction":
      return checkTransaction(fields, checks);
    case "receipt":
      return checkReceiptOf(fields, checks);
  }
};

const checkValue = (value: unknown, checks: Exclude<ResponseChecks, { kind: "json" }>): readonly Finding[] => {
  switch (checks.kind) {
    case "block":
      return isFields(value) ? checkObject(value, checks) : [failed("block")];
    case "transaction":
    case "receipt":
      return isFields(value) ? checkObject(value, checks) : [failed("transaction")];
    case "raw":
      return typeof value === "string" ? [checkRawTransaction(value, checks.hash)] : [failed("transaction")];
    case "receipts":
      return Array.isArray(value) ? checkBlockReceipts(value, checks) : [failed("block")];
    case "logs":
      return Array.isArray(value) ? checkLogs(value, checks) : [failed("logs")];
    case "proof":
      return isFields(value) ? checkProof(value, checks.request) : [failed("proof")];
    case "accessList":
      return [failIfMalformed("accessList", () => checkAccessList(value, checks.hash))];
  }
};

const checkJson = (body: Uint8Array, { hasItems }: ResponseChecks & { kind: "json" }): Finding => {
  if (!isJson(body)) {
    return failed("json");
  }
  return hasItems ? { ...passed("json"), isWhole: areItemsWhole(body) } : passed("json");
};

/** Returns the findings for a response's JSON text. There are none for `null`. */
export const checkBody = (body: Uint8Array, checks: ResponseChecks): readonly Finding[] => {
  if (checks.kind === "json") {
    return [checkJson(body, checks)];
  }
  const value = parse(body);
  if (value === undefined) {
    return [failed("json")];
  }
  return value === null ? [] : checkValue(value, checks);
};
