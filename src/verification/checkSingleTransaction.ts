import type { BlockId } from "../core/heads.ts";
import { parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { type BlockTransactions, isLocatedIn } from "./blockRows.ts";
import { checkTransactionHash, type TransactionFacts } from "./checkTransactions.ts";
import { type ExpectedLocation, isLocatedAt, isScannedBlock } from "./expectedLocation.ts";
import { type Finding, failed, failIfMalformed, passed } from "./findings.ts";
import { dataOf, isNumber, isSame } from "./jsonFields.ts";

const BLOB_TYPE = 3;

/** The checks of one transaction. */
export interface SingleTransactionChecks {
  readonly kind: "transaction";
  /** The transaction's, if the call contains it. */
  readonly hash?: string;
  readonly location: ExpectedLocation;
  /** Its hash is computed and compared. */
  readonly checksHashes: boolean;
  /** The transactions of its block, if they are known. */
  readonly block?: BlockTransactions | undefined;
  readonly facts?: TransactionFacts;
  /** The block that a scan of the response found, or null. */
  readonly scannedBlock?: BlockId | null;
}

/** Checks that a transaction is the expected one, and its hash. */
export const checkSingleTransaction = (fields: Fields, checks: SingleTransactionChecks): readonly Finding[] => {
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

/** The checks of a transaction's bytes. */
export interface RawChecks {
  readonly kind: "raw";
  readonly hash: string;
}

/** Checks the hash of a transaction's bytes. Some nodes return `0x` for an unknown transaction, which passes. */
export const checkRawTransaction = (raw: string, { hash }: RawChecks): Finding =>
  failIfMalformed("transaction", () => {
    const bytes = parseData(dataOf(raw));
    if (isSame(hash, keccak256Hex(bytes))) {
      return passed("transaction");
    }
    // A blob transaction from the node's pool includes its blobs, which its hash does not cover.
    if (bytes[0] !== BLOB_TYPE) {
      return failed("transaction");
    }
    try {
      return isSame(hash, parseTransaction(bytes).hash) ? passed("transaction") : failed("transaction");
    } catch {
      return failed("transaction");
    }
  });
