import type { RpcRequest } from "../core/rpcSource.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { type Awaitable, type Call, whenKnown } from "../jsonrpc/call.ts";
import type { Checker, VerifiedCall, VerifiedResponse } from "./checker.ts";
import type { RawChecks, SingleTransactionChecks } from "./checkSingleTransaction.ts";
import { expectedLocation } from "./expectedLocation.ts";
import { readResponseBlock } from "./responseBlock.ts";

const BY_HASH = "eth_getTransactionByHash";

/** The checks of a call for a transaction; undefined if it names the block by a tag. */
export const transactionChecks = (
  call: Call,
  request: RpcRequest,
  checksHashes: boolean,
): SingleTransactionChecks | undefined => {
  const [first, index] = call.params;
  if (call.method === BY_HASH) {
    return { kind: "transaction", hash: String(first), location: {}, checksHashes };
  }
  const block = expectedLocation(call, request);
  const location = block && { ...block, ...(isQuantity(index) && { index: BigInt(index) }) };
  return location && { kind: "transaction", location, checksHashes };
};

/** Verifies one transaction, also by what is known of its block. Of an unknown type, only the place is checked. */
export const verifyTransaction = (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Awaitable<VerifiedResponse> => {
  const checks = transactionChecks(verifiedCall.call, verifiedCall.request, true);
  if (checks === undefined) {
    return checker.checkForm(verifiedCall, body);
  }
  const scannedBlock = readResponseBlock(body, "blockHash") ?? null;
  const block = scannedBlock === null ? undefined : checker.blocks.get(scannedBlock.hash).transactions;
  const facts = scannedBlock === null ? {} : { hasLagoon: checker.hasLagoon() };
  return whenKnown(checker.check(verifiedCall, body, { ...checks, scannedBlock, block, facts }), (checked) => ({
    grade: checked.isVerified ? "checked" : undefined,
    ...checker.partOf(verifiedCall, "transactions", checked),
  }));
};

/** Verifies the bytes of a transaction. */
export const verifyRaw = (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Awaitable<VerifiedResponse> => {
  const checks: RawChecks = { kind: "raw", hash: String(verifiedCall.call.params[0]) };
  return whenKnown(checker.check(verifiedCall, body, checks), ({ isVerified }) => ({
    grade: isVerified ? "checked" : undefined,
  }));
};
