import { UnverifiedError } from "../core/node.ts";
import { type Awaitable, type Call, whenKnown } from "../jsonrpc/call.ts";
import { isListedAtIndex } from "./blockRows.ts";
import type { Checker, VerifiedCall, VerifiedResponse } from "./checker.ts";
import type { ReceiptChecks } from "./checkReceipt.ts";
import { readResponseBlock } from "./responseBlock.ts";
import { readTransactions } from "./verifyBlock.ts";
import { statesRefund, UNKNOWN_REFUND } from "./verifyReceipts.ts";

/** The checks of a call for one receipt. */
export const receiptChecks = ({ params: [hash] }: Call, checksHashes: boolean): ReceiptChecks => ({
  kind: "receipt",
  hash: String(hash),
  checksHashes,
});

/** Verifies one receipt by what is known of its block. */
export const verifyReceipt = (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Awaitable<VerifiedResponse> => {
  const { node, call, context } = verifiedCall;
  const checks = receiptChecks(call, true);
  const id = readResponseBlock(body, "blockHash");
  if (id === undefined) {
    return compare(checker, verifiedCall, body, { ...checks, scannedBlock: null });
  }
  const { transactions: block, receipts } = checker.blocks.get(id.hash);
  const found = checker.evidence.isOff("header") ? undefined : checker.headers.find(id, context.view.heads);
  const header = found?.isComputed ? found : undefined;
  const known = { ...checks, scannedBlock: id, block, receipts, header };
  const isElsewhere = receipts !== undefined && !isListedAtIndex(body, checks.hash, receipts);
  if (block !== undefined || !(isElsewhere || statesRefund(body))) {
    return compare(checker, verifiedCall, body, known);
  }
  return readTransactions(checker, node, id.hash, context).then(async (read) => {
    if (read === undefined && isElsewhere) {
      throw new UnverifiedError(node.name, "transaction", false);
    }
    const checked = await compare(checker, verifiedCall, body, { ...known, block: read });
    return read === undefined ? UNKNOWN_REFUND : checked;
  });
};

/** A receipt that was compared with its own form alone is not verified. */
const compare = (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
  checks: ReceiptChecks,
): Awaitable<VerifiedResponse> => {
  const isCompared = checks.receipts !== undefined || checks.header !== undefined;
  return whenKnown(checker.check(verifiedCall, body, checks), ({ isVerified }) => ({
    grade: isVerified && isCompared ? "checked" : undefined,
  }));
};
