import { isData } from "../ethereum/hex.ts";
import { POST_EXEC_TYPE } from "../ethereum/postExec.ts";
import { type ChainForks, hasLagoon } from "../ethereum/rules.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import { isFields } from "../json/jsonBytes.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { MethodChain } from "./method.ts";

const isUnsendable = (type: number, forks: ChainForks): boolean =>
  (type === DEPOSIT_TYPE && forks.op !== undefined) || (type === POST_EXEC_TYPE && hasLagoon(forks));

/** Returns what a method sends by its first parameter: that itself, `tx` of it, or `txs` of a bundle. */
export const rawTransactionsOf = (parameter: unknown): readonly unknown[] => {
  const { tx, txs } = isFields(parameter) ? parameter : {};
  return [parameter, tx, ...(Array.isArray(txs) ? txs : [])];
};

/**
 * Throws for a raw transaction that only the chain itself may create: a deposit, or a post-exec transaction. No node gets it.
 * Sources: https://specs.optimism.io/protocol/deposits.html, https://specs.optimism.io/protocol/lagoon/post-exec.html
 */
export const requireSendable = ({ forks }: Pick<MethodChain, "forks">, raw: unknown): void => {
  const type = isData(raw) ? Number(raw.slice(0, 4)) : Number.NaN;
  if (forks !== undefined && isUnsendable(type, forks)) {
    // The text of geth.
    throw new RpcError(CODES.SERVER, "transaction type not supported");
  }
};
