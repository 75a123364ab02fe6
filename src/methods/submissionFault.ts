import { parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import { larger } from "../ethereum/bigintOrder.ts";
import { formatQuantity, type Hash, isQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { SentTransaction } from "../pending/submittedTransaction.ts";
import { eth_getBalance } from "./eth_getBalance.ts";
import { eth_getTransactionCount } from "./eth_getTransactionCount.ts";
import type { MethodInput } from "./method.ts";
import { nonceIn } from "./pendingReads.ts";

const NONCE = "eth_getTransactionCount";

/** Reads the node's own pending nonce, which includes transactions that forebay has not seen. Returns undefined if the read fails. */
const readNodeNonce = async ({ chain, context }: MethodInput, address: string): Promise<RpcResponse | undefined> => {
  const request = { ...createCall(NONCE, [address, "pending"]), retention: "never", canonicalParams: "" } as const;
  return Promise.try(() => chain.reads.request(request, context)).catch(() => undefined);
};

/** The error of a transaction that waits for one with a lower nonce. Its data is the expected nonce. */
const findNonceGap = async (input: MethodInput, { sender, nonce }: SentTransaction): Promise<RpcError | undefined> => {
  const known = nonceIn(
    await eth_getTransactionCount.handle({ ...input, call: createCall(NONCE, [sender, "pending"]) }),
  );
  const ofNode = known < nonce ? await readNodeNonce(input, sender) : undefined;
  const pooled = ofNode && nonceIn(ofNode);
  if (pooled === undefined || pooled >= nonce) {
    return undefined;
  }
  const expected = formatQuantity(larger(known, pooled));
  const message = `The transaction was added to the mempool but wasn't processed: its nonce is ${formatQuantity(nonce)}, and ${expected} is missing.`;
  return new RpcError(CODES.NONCE_GAP, message, { data: expected });
};

/** The error of the next transaction of a sender that cannot pay it after a block. Its data is the hash. */
const findLackOfFunds = async (
  input: MethodInput,
  { sender, cost }: SentTransaction,
  { hash, blockHash }: { readonly hash: Hash; readonly blockHash: Hash },
): Promise<RpcError | undefined> => {
  // At `pending`, a node may have spent the funds on this transaction.
  const call = createCall("eth_getBalance", [sender, { blockHash }]);
  const balance = parsedResult(await eth_getBalance.handle({ ...input, call }));
  return isQuantity(balance) && BigInt(balance) < cost
    ? new RpcError(
        CODES.QUEUED,
        `The transaction was added to the mempool but wasn't processed: it needs ${cost} wei, and its sender has ${BigInt(balance)}.`,
        { data: hash },
      )
    : undefined;
};

/**
 * Returns why a transaction that a node accepted is not in the newest block of the view. Code 6 of EIP-7966: a transaction with a
 * lower nonce is missing. Code 5: its sender cannot pay. Undefined if neither is the case, or if its nonce is used.
 */
export const findSubmissionFault = async (
  input: MethodInput,
  transaction: SentTransaction,
  hash: Hash,
): Promise<RpcError | undefined> => {
  const blockHash = input.context.view.heads.latest.hash;
  const call = createCall(NONCE, [transaction.sender, { blockHash }]);
  const next = nonceIn(await eth_getTransactionCount.handle({ ...input, call }));
  if (next === transaction.nonce) {
    return findLackOfFunds(input, transaction, { hash, blockHash });
  }
  return next < transaction.nonce ? findNonceGap(input, transaction) : undefined;
};
