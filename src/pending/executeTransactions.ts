import { bloomOfLogs } from "../ethereum/bloom.ts";
import type { Address } from "../ethereum/hex.ts";
import type { Receipt } from "../ethereum/receipt.ts";
import { isOpForkActive } from "../ethereum/rules.ts";
import {
  DEPOSIT_TYPE,
  type DepositTransaction,
  type SignedTransaction,
  type Transaction,
} from "../ethereum/transaction.ts";
import { applyDeposit } from "../evm/applyDeposit.ts";
import { applyTransaction } from "../evm/applyTransaction.ts";
import type { TransactionChecks } from "../evm/checkTransaction.ts";
import type { BlockEnvironment, Engine, EngineLog } from "../evm/engine.ts";
import { l1AttributesOf, opChainFees } from "../evm/opChainFees.ts";
import type { StateOverlay } from "../evm/stateOverlay.ts";
import { messageOf } from "../evm/transactionMessage.ts";
import type { ReceiptExtra } from "./execution.ts";
import { opReceiptExtra } from "./opReceipt.ts";

/** A transaction with its sender, ready to run. */
export type Prepared =
  | { readonly transaction: DepositTransaction }
  | { readonly transaction: SignedTransaction; readonly sender: Address };

/** Where a block's transactions run. */
export interface BlockPlace {
  readonly engine: Engine;
  readonly state: StateOverlay;
  readonly block: BlockEnvironment;
}

/** OP stack, specs/protocol/deposits.md: since Canyon a deposit's receipt says its version. */
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

const depositPart = (engine: Engine, nonce: bigint) => ({
  ...(isOpForkActive(engine.rules, "regolith") ? { depositNonce: nonce } : {}),
  ...(isOpForkActive(engine.rules, "canyon") ? { depositReceiptVersion: DEPOSIT_RECEIPT_VERSION } : {}),
});

export interface Executed {
  readonly receipt: Receipt;
  readonly extra: ReceiptExtra;
}

/** Runs a block's next transaction. `gasUsed`: of the block before it. Throws TransactionError if no block can hold it. */
export const executeTransaction = async (
  { engine, state, block }: BlockPlace,
  prepared: Prepared,
  gasUsed: bigint,
  checks?: TransactionChecks,
): Promise<Executed> => {
  const { rules } = engine;
  if (!("sender" in prepared)) {
    const { transaction } = prepared;
    const result = await applyDeposit({ engine, state, block }, transaction);
    const receipt = receiptOf(transaction, result, gasUsed + result.gasUsed);
    return { receipt: { ...receipt, ...depositPart(engine, result.nonce) }, extra: {} };
  }
  const { transaction, sender } = prepared;
  // The block's first deposit has written them by now.
  const l1 = rules.op !== undefined ? l1AttributesOf(state) : undefined;
  const result = await applyTransaction({ engine, state, block }, messageOf(transaction, sender), {
    ...(l1 ? { fees: opChainFees(rules, l1, transaction.raw) } : {}),
    ...(checks ? { checks } : {}),
  });
  const extra = l1 ? opReceiptExtra(rules, l1, transaction.raw) : {};
  return { receipt: receiptOf(transaction, result, gasUsed + result.gasUsed), extra };
};

export const isDeposit = (transaction: Transaction): transaction is DepositTransaction =>
  transaction.type === DEPOSIT_TYPE;
