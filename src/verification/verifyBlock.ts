import type { Context } from "../core/context.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { type Awaitable, type Call, createCall, whenKnown } from "../jsonrpc/call.ts";
import type { BlockTransactions } from "./blockRows.ts";
import type { BlockChecks } from "./checkBlock.ts";
import {
  boundResponse,
  type Checker,
  type ReadCall,
  type VerifiedCall,
  type VerifiedNode,
  type VerifiedResponse,
} from "./checker.ts";
import { expectedLocation } from "./expectedLocation.ts";
import { readResponseBlock } from "./responseBlock.ts";

/** The checks of a call for a block or a header; undefined if it names the block by a tag. */
export const blockChecks = (call: Call, request: RpcRequest, checksHashes: boolean): BlockChecks | undefined => {
  const location = expectedLocation(call, request);
  return (
    location && {
      ...{ kind: "block", location, checksHashes },
      ...(call.method.startsWith("eth_getBlock") && { transactions: call.params[1] === true ? "full" : "hashes" }),
    }
  );
};

/** Verifies a block or a header. It is proven if the request or the served chain has its hash. */
export const verifyBlock = (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Awaitable<VerifiedResponse> => {
  const { call, request, context } = verifiedCall;
  const checks = blockChecks(call, request, true);
  if (checks === undefined) {
    return checker.checkForm(verifiedCall, body);
  }
  const scanned = readResponseBlock(body, "hash");
  const isKnown = scanned !== undefined && checks.transactions === "hashes";
  const block = isKnown ? checker.blocks.get(scanned.hash).transactions : undefined;
  const all = { ...checks, block, scannedBlock: scanned ?? null };
  return whenKnown(checkAllTypes(checker, verifiedCall, body, all), (checked) => {
    const { grade } = boundResponse(checked, checked.boundTo, { location: checks.location, context });
    return { grade, block: scanned, ...checker.partOf(verifiedCall, "transactions", checked) };
  });
};

/**
 * Reads the transactions of a block whose receipts name another transaction at an index than a single receipt, or that gives back
 * gas. The receipts root covers neither the hash of a transaction nor a refund. Undefined if the types of some are not known.
 */
export const readTransactions = async (
  checker: Checker,
  node: VerifiedNode,
  hash: string,
  context: Context,
): Promise<BlockTransactions | undefined> => {
  const call = createCall("eth_getBlockByHash", [hash, true]);
  const body = await node.send(call, context);
  const checks: BlockChecks = { kind: "block", location: { hash }, checksHashes: true, transactions: "full" };
  await checkAllTypes(checker, { node, call, context }, body, checks);
  return checker.blocks.get(hash).transactions;
};

/** Checks a block. Transactions of unknown types are checked by their bytes, if the node has them. */
const checkAllTypes = (
  checker: Checker,
  answered: ReadCall,
  body: Uint8Array,
  checks: BlockChecks,
): ReturnType<Checker["check"]> => {
  const facts = { hasLagoon: checker.hasLagoon() };
  return whenKnown(checker.check(answered, body, { ...checks, facts }), (checked) =>
    checked.unknown.length === 0
      ? checked
      : checker.types
          .readTransactions(answered.node, checked.unknown, answered.context)
          .then((raws) =>
            raws === undefined ? checked : checker.check(answered, body, { ...checks, facts: { ...facts, raws } }),
          ),
  );
};
