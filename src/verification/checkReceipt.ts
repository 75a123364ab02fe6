import type { BlockId } from "../core/heads.ts";
import type { Fields } from "../json/jsonBytes.ts";
import type { VerifiedReceipts } from "./blockRows.ts";
import { type BlockTransactions, isLocatedIn, isReceiptAt } from "./blockRows.ts";
import { hasOwnBloom, isReceiptOf, isReceiptUnder } from "./checkReceipts.ts";
import { isScannedBlock } from "./expectedLocation.ts";
import { type Finding, failed, failIfMalformed, passed } from "./findings.ts";
import { isSame, numberOf } from "./jsonFields.ts";
import type { ReceiptsHeader } from "./knownHeader.ts";

/** The checks of one receipt. `block`, `receipts` and `header`: those of its block, if they are known. */
export interface ReceiptChecks {
  readonly kind: "receipt";
  /** Of its transaction. */
  readonly hash: string;
  /** Its bloom is computed and compared. */
  readonly checksHashes: boolean;
  readonly block?: BlockTransactions | undefined;
  readonly receipts?: VerifiedReceipts | undefined;
  readonly header?: ReceiptsHeader | undefined;
  /** The block that a scan of the response found, or null. */
  readonly scannedBlock?: BlockId | null;
}

const isReceiptIn = (receipt: Fields, block: BlockTransactions): boolean =>
  isLocatedIn(receipt, receipt.transactionHash, block) &&
  isReceiptAt(receipt, block, Number(numberOf(receipt.transactionIndex)));

/** Checks that a receipt is the expected one, and that it agrees with what is known of its block. */
export const checkReceipt = (
  receipt: Fields,
  { hash, checksHashes, block, receipts, header, scannedBlock }: ReceiptChecks,
): readonly Finding[] => {
  const finding = failIfMalformed("transaction", () => {
    const isExpected =
      isSame(receipt.transactionHash, hash) &&
      isScannedBlock({ hash: receipt.blockHash, number: receipt.blockNumber }, scannedBlock) &&
      (block === undefined || isReceiptIn(receipt, block)) &&
      (receipts === undefined || isReceiptOf(receipt, receipts)) &&
      (header === undefined || isReceiptUnder(receipt, header));
    return isExpected ? passed("transaction") : failed("transaction");
  });
  if (finding.outcome !== "passed" || !checksHashes) {
    return [finding];
  }
  // A matching bloom is no evidence for the encoding of receipts, so it is no finding.
  const bloom = failIfMalformed("receipts", () => (hasOwnBloom(receipt) ? passed("receipts") : failed("receipts")));
  return bloom.outcome === "passed" ? [finding] : [finding, bloom];
};
