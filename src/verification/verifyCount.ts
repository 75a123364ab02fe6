import { UnverifiedError } from "../core/node.ts";
import { isHash } from "../ethereum/hex.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/call.ts";
import { countTransactions } from "./blockRows.ts";
import type { Checker, VerifiedCall, VerifiedResponse } from "./checker.ts";
import { quantityOf } from "./jsonFields.ts";

/** Verifies the number of a block's transactions or uncles, if they are known. A node asked by number may be on another branch. */
export const verifyCount = (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Awaitable<VerifiedResponse> => {
  const { node, call, request } = verifiedCall;
  const [named] = call.params;
  const hash = isHash(named) ? named : request.block?.hash;
  const expected = hash && knownCount(checker, verifiedCall, hash);
  return whenKnown(checker.checkForm(verifiedCall, body), (verified) => {
    if (hash === undefined || expected === undefined) {
      return verified;
    }
    if (quantityOf(parseJson(body)) === BigInt(expected.count)) {
      return { grade: "proven", block: { number: expected.number, hash } };
    }
    if (isHash(named)) {
      throw new UnverifiedError(node.name, "block", true);
    }
    return verified;
  });
};

const knownCount = (
  { blocks, headers }: Checker,
  { call, request, context }: VerifiedCall,
  hash: string,
): { readonly count: number; readonly number: bigint } | undefined => {
  if (!call.method.startsWith("eth_getUncle")) {
    const { transactions } = blocks.get(hash);
    return transactions && { count: countTransactions(transactions), number: transactions.number };
  }
  const number = request.block?.number;
  const header = headers.find({ hash, ...(number !== undefined && { number }) }, context.view.heads);
  return header?.isComputed === true && header.hasNoUncles ? { count: 0, number: header.number } : undefined;
};
