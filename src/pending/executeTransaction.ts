import { bloomOfLogs } from "../ethereum/bloom.ts";
import { effectiveGasPrice } from "../ethereum/formatTransaction.ts";
import type { Address } from "../ethereum/hex.ts";
import type { Receipt } from "../ethereum/receipt.ts";
import type { DepositTransaction, SignedTransaction, Transaction } from "../ethereum/transaction.ts";
import type { EngineLog, ExecutionContext, TransactionChecks } from "../evm/engine.ts";
import { messageOf } from "../evm/transactionMessage.ts";
import type { Executed } from "./executableMessage.ts";
import { InvalidRefund, readBeforeRefund, settleRefund } from "./refunds.ts";

/** A transaction with its sender, ready for execution. */
export type Prepared =
  | { readonly transaction: DepositTransaction }
  | { readonly transaction: SignedTransaction; readonly sender: Address };

/** The version in receipts of deposits since Canyon (https://specs.optimism.io/protocol/deposits.html). Feeds are younger. */
const DEPOSIT_RECEIPT_VERSION = 1n;

const receiptOf = (
  transaction: Transaction,
  result: { readonly status: string; readonly logs: readonly EngineLog[] },
  cumulativeGasUsed: bigint,
): Receipt => {
  const logs = result.logs.map(({ address, topics, data }) => ({ address, topics, data }));
  return {
    type: transaction.type,
    status: result.status === "success",
    cumulativeGasUsed,
    logs,
    logsBloom: bloomOfLogs(logs),
  };
};

/** What is not the same for every transaction. */
interface ExecuteOptions {
  readonly checks?: TransactionChecks;
  /** Gas that the block's last transaction gives back to this one. */
  readonly refund?: bigint | undefined;
}

/**
 * Executes a block's next transaction. `gasUsed` is the block's gas before it.
 * Throws TransactionError if the transaction is invalid in every block, and InvalidRefund.
 */
export const executeTransaction = async (
  context: ExecutionContext,
  prepared: Prepared,
  gasUsed: bigint,
  { checks, refund = 0n }: ExecuteOptions = {},
): Promise<Executed> => {
  const { engine } = context;
  if (!("sender" in prepared)) {
    const { transaction } = prepared;
    const result = await engine.deposit(context, transaction);
    if (refund > 0n) {
      throw new InvalidRefund("a deposit gets no gas back");
    }
    const receipt = receiptOf(transaction, result, gasUsed + result.gasUsed);
    return {
      receipt: { ...receipt, depositNonce: result.nonce, depositReceiptVersion: DEPOSIT_RECEIPT_VERSION },
      gasUsed: result.gasUsed,
      refund,
      payer: undefined,
    };
  }
  const { transaction, sender } = prepared;
  const { raw } = transaction;
  const payer = { sender, gasPrice: effectiveGasPrice(transaction, context.block.baseFee) };
  if (refund > 0n) {
    readBeforeRefund(context, payer);
  }
  const result = await engine.transact(context, messageOf(transaction, sender), { checks, raw });
  if (refund > 0n) {
    settleRefund(context, { payer, gasUsed: result.gasUsed, from: 0n, to: refund });
  }
  const receipt = receiptOf(transaction, result, gasUsed + result.gasUsed - refund);
  return { receipt, gasUsed: result.gasUsed, refund, payer };
};
