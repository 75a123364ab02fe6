import type { RpcRequest } from "../core/rpcSource.ts";
import { POST_EXEC_TYPE } from "../ethereum/postExec.ts";
import { asBuffer, QUOTE, skipSpace } from "../json/jsonBytes.ts";
import type { Call } from "../jsonrpc/call.ts";
import { type Checker, lacksHeader, type ReadCall, type VerifiedCall, type VerifiedResponse } from "./checker.ts";
import type { ReceiptsChecks } from "./checkReceipts.ts";
import { expectedLocation } from "./expectedLocation.ts";
import { readResponseBlock } from "./responseBlock.ts";
import { readTransactions } from "./verifyBlock.ts";

/** Of receipts that state a refund, whose block has transactions that forebay cannot check. Another node may show them. */
export const UNKNOWN_REFUND: VerifiedResponse = { isPartial: true };

const REFUND = '"opGasRefund"';

/** Whether receipts, given as JSON text, state gas that their block gave back. */
export const statesRefund = (body: Uint8Array): boolean => {
  const bytes = asBuffer(body);
  for (let at = bytes.indexOf(REFUND); at !== -1; at = bytes.indexOf(REFUND, at + REFUND.length)) {
    const colon = skipSpace(bytes, at + REFUND.length);
    if (bytes[skipSpace(bytes, colon + 1)] === QUOTE) {
      return true;
    }
  }
  return false;
};

/** The checks of a call for the receipts of a block; undefined if it names the block by a tag. */
export const receiptsChecks = (call: Call, request: RpcRequest): ReceiptsChecks | undefined => {
  const location = expectedLocation(call, request);
  return location && { kind: "receipts", location, header: undefined };
};

/** Verifies the receipts of a block by the root in its header. */
export const verifyReceipts = async (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Promise<VerifiedResponse> => {
  const { node, call, request, context } = verifiedCall;
  const checks = receiptsChecks(call, request);
  if (checks === undefined) {
    return checker.checkForm(verifiedCall, body);
  }
  const hash = readResponseBlock(body, "firstBlockHash")?.hash ?? request.block?.hash ?? checks.location.hash;
  const location = { ...checks.location, ...(hash !== undefined && { hash }) };
  const header = await checker.readHeader(node, location, context);
  if (header === undefined) {
    throw lacksHeader(node, "receipts");
  }
  const hasRefund = statesRefund(body);
  const { transactions: known } = checker.blocks.get(header.hash);
  const transactions =
    known === undefined && hasRefund ? await readTransactions(checker, node, header.hash, context) : known;
  const checked = await checkAllTypes(checker, verifiedCall, body, { ...checks, header, facts: { transactions } });
  if (transactions === undefined && hasRefund) {
    return UNKNOWN_REFUND;
  }
  const grade = checked.isVerified && header.isComputed ? "checked" : undefined;
  return { grade, ...checker.partOf(verifiedCall, "receipts", checked) };
};

/** Checks the receipts of a block. Those of unknown types are checked by their bytes, if the node has them. */
const checkAllTypes = async (
  checker: Checker,
  answered: ReadCall,
  body: Uint8Array,
  checks: ReceiptsChecks,
): Promise<Awaited<ReturnType<Checker["check"]>>> => {
  const postExec = checker.hasLagoon() ? [POST_EXEC_TYPE] : [];
  const facts = { ...checks.facts, standardTypes: [...postExec, ...checker.types.standard] };
  const checked = await checker.check(answered, body, { ...checks, facts });
  const hash = checks.header?.hash;
  const raws =
    checked.unknown.length === 0 || hash === undefined
      ? undefined
      : await checker.types.readReceipts(answered.node, hash, answered.context);
  return raws === undefined ? checked : checker.check(answered, body, { ...checks, facts: { ...facts, raws } });
};
