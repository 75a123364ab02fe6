import type { BlockId } from "../core/heads.ts";
import { isHash } from "../ethereum/hex.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import { type BlockTransactions, formatTransactions, hasHashesOf } from "./blockRows.ts";
import { boundBlock } from "./boundBlock.ts";
import { checkHeader } from "./checkHeader.ts";
import { checkTransactions, matchesEmptyRoot, type TransactionFacts } from "./checkTransactions.ts";
import { type ExpectedLocation, isLocatedAt, isScannedBlock } from "./expectedLocation.ts";
import { type Finding, failed, passed } from "./findings.ts";
import { listOf } from "./jsonFields.ts";
import { knownHeaderOf } from "./knownHeader.ts";

/** The checks of a block or a header. */
export interface BlockChecks {
  readonly kind: "block";
  readonly location: ExpectedLocation;
  /** Hashes and roots are computed and compared. */
  readonly checksHashes: boolean;
  /** The form of the transactions that the block must have. A header has none. Full ones that pass are in the finding. */
  readonly transactions?: "full" | "hashes";
  /** The block's transactions, if they are known. */
  readonly block?: BlockTransactions | undefined;
  readonly facts?: TransactionFacts;
  /** The block that a scan of the response found, or null. */
  readonly scannedBlock?: BlockId | null;
}

const isListOf = (transactions: unknown, form: "full" | "hashes"): boolean =>
  Array.isArray(transactions) && transactions.every((item) => (form === "full" ? isFields(item) : isHash(item)));

/** Checks that a block is the expected one, and its hash and transactions. */
export const checkBlock = (block: Fields, checks: BlockChecks): readonly Finding[] => {
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
    const boundTo = boundBlock(block, known);
    findings.push({ ...header, known: knownHeaderOf(block, true), ...(boundTo !== undefined && { boundTo }) });
  } else {
    findings.push(header);
  }
  findings.push(...(Array.isArray(block.transactions) ? findingsOfTransactions(block, checks) : []));
  return findings;
};

const findingsOfTransactions = (block: Fields, checks: BlockChecks): readonly Finding[] => {
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
      // The hashes of the others were computed, so forebay knows the chain's encoding.
      return (finding.unknown?.length ?? 0) < transactions.length ? [passed("transactions"), finding] : [finding];
    default:
      return [finding];
  }
};
